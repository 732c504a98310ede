// Package job is the domain of Sunhwa: what a job is, how it is named, which
// states it may be in, who moves it, and the errors every other package speaks.
//
// It knows no technology. Adapters (jobstore, comments, rewrite, dispatch) turn
// what their vendors answer into the errors of this package; handlers turn those
// into HTTP.
package job

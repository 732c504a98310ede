// Package history checks the shipped job store from outside: concurrent clients
// call it on a real server, every call is noted with the moments of its start and
// its end, and then an order is looked for in which the pure state machine
// (job.Machine) would have given the same answers. If each call took effect at
// one moment between its start and its end, such an order exists; if none exists,
// something was answered that no order explains, and the violation is shown.
//
// The search is porcupine's (https://github.com/anishathalye/porcupine, which
// explains linearizability too). Targets share nothing, so each target's history
// is searched alone.
//
// Time passes in a history only when its clock says so: a script makes all keys
// of the target expire sooner by one amount, in one step. Nothing else lapses
// while a history is recorded, because its jobs live longer than that by minutes.
package history

// Package jobstore keeps jobs in Redis. Every change of a job is one Lua script
// (lua/*.lua), so that its checks and its writes are one step; nothing else
// writes a job.
//
// One file builds keys (keys.go), one holds the scripts and their reply codes
// (scripts.go), one turns Redis's errors into those of package job (classify.go).
package jobstore

// Package explore walks every order in which several actors can call the shipped
// job store, and checks after every step that what Sunhwa promises still holds.
//
// A world is the keys in Redis, where each actor stands in its program, and what
// is on its way between them (dispatched events, replies that may be lost,
// crashes that may happen). From each world every enabled step is taken, on
// miniredis with its clock moved by hand, breadth first, so that the first
// violation found is one of the shortest. A world seen before is not walked again:
// all that can follow from it has been, or will be, walked from its first sight.
//
// The same package breaks the scripts on purpose (mutants.go) and demands that
// the checks notice, and replays sampled orders on real servers (replay.go).
package explore

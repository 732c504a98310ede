// Package samtest checks what is deployed: the template and its nested stacks as
// SAM and cfn-lint read them, the binaries that `sam build` makes, under Lambda's
// runtime interface emulator, and, where a container engine can be started, the
// functions as `sam local` runs them. `make sam-test` runs all of it.
//
// Most tests need the SAM CLI and have the build tag sam. Those without it, about
// texts alone, run with every other test.
package samtest

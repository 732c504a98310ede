//go:build !linux

package testkit

import "syscall"

// dieWithParent has no portable form: elsewhere than on Linux a server outlives a
// test process that was killed before Main or a clean-up could end it.
func dieWithParent() *syscall.SysProcAttr { return nil }

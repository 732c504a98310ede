package testkit

import "syscall"

// dieWithParent makes the kernel kill the child when the thread that started it
// ends (prctl(2), PR_SET_PDEATHSIG), which spawner keeps alive as long as the
// test process.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

package testkit

// Start starts a deployment for a program that is no test; Stop ends it. Its
// servers die with the program in any case.
func Start(o Options) (*Engine, error) { return start(o) }

// Stop ends every server and removes what they wrote. It may be called again.
func (e *Engine) Stop() { e.stop() }

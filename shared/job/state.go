package job

// Status is where a job is in its life. It is written by the scripts of package
// jobstore and by nothing else.
type Status string

const (
	// Running: entered once, by acquire. Left by finish (the worker), fail (the
	// worker, start or a cancel), and by read, inspect or erase when the deadline
	// has passed. Rescued by the sweeper when its worker is lost, and by the
	// deadline when every function is down.
	Running Status = "RUNNING"
	// Success: entered only by finish, before the deadline, with the claim and
	// the attempt's token held and every result recorded. Never left.
	Success Status = "SUCCESS"
	// Failed: entered with a Code that says why. Never left.
	Failed Status = "FAILED"
)

// Terminal reports whether no move leaves s.
func (s Status) Terminal() bool { return s == Success || s == Failed }

// Code says why a job is FAILED.
type Code string

const (
	// CodeDeadlineExceeded is set by whatever touches the job first after its
	// deadline (read, fail, inspect, erase). The target is free already: the
	// claim expired with the deadline. Start again.
	CodeDeadlineExceeded Code = "DEADLINE_EXCEEDED"
	// CodeLLMFailed is set by the worker when the model permanently refused one
	// comment. Start again once the cause is mended; recorded answers are in the memo.
	CodeLLMFailed Code = "LLM_FAILED"
	// CodeDispatchFailed is set by start when Lambda definitely refused the
	// invocation and no attempt had begun.
	CodeDispatchFailed Code = "DISPATCH_FAILED"
	// CodeWorkerLost is set by the sweeper when the lease lapsed and every
	// attempt was used.
	CodeWorkerLost Code = "WORKER_LOST"
	// CodeClaimLost is set by the sweeper when the claim names another job or
	// none before the deadline (a failover that took it back).
	CodeClaimLost Code = "CLAIM_LOST"
	// CodeCanceled is set by a caller's cancel or erase.
	CodeCanceled Code = "CANCELED"
	// CodeBudgetExceeded is set by the worker when the job's tokens passed
	// MAX_JOB_TOKENS.
	CodeBudgetExceeded Code = "BUDGET_EXCEEDED"
	// CodeInternal is set by the worker after a recovered panic, an unknown
	// prompt version, or a finish that kept missing results.
	CodeInternal Code = "INTERNAL"
)

// Codes lists every failure code there is.
func Codes() []Code {
	return []Code{
		CodeDeadlineExceeded, CodeLLMFailed, CodeDispatchFailed, CodeWorkerLost,
		CodeClaimLost, CodeCanceled, CodeBudgetExceeded, CodeInternal,
	}
}

// Message returns what happened and what to do, for a reader of the API. It
// never holds comment text.
func (c Code) Message() string {
	switch c {
	case CodeDeadlineExceeded:
		return "The job did not finish before its deadline. Start it again; answers already paid for are reused."
	case CodeLLMFailed:
		return "The language model could not rewrite a comment. Check the comment and the model, then start again; answers already paid for are reused."
	case CodeDispatchFailed:
		return "The worker could not be invoked. Nothing was rewritten; start again."
	case CodeWorkerLost:
		return "The worker stopped without finishing and all attempts are used. Start again; answers already paid for are reused."
	case CodeClaimLost:
		return "The job lost its claim on the target, as a Redis failover can cause. Start again."
	case CodeCanceled:
		return "The job was canceled by a caller."
	case CodeBudgetExceeded:
		return "The job used more tokens than MAX_JOB_TOKENS allows. Send fewer comments or raise the limit."
	case CodeInternal:
		return "The job failed inside Sunhwa; the log has the cause under this jobId."
	}
	return "The job failed."
}

// Guard says what must hold for a fail to be allowed.
type Guard string

const (
	// GuardWorker: the attempt's token is the current one.
	GuardWorker Guard = "worker"
	// GuardStart: no attempt has begun.
	GuardStart Guard = "start"
	// GuardCancel: nothing; whoever may see the job may end it.
	GuardCancel Guard = "cancel"
)

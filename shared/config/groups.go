package config

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Log is what every function has.
type Log struct {
	LogLevel Level `env:"LOG_LEVEL" envDefault:"info"`
}

// Redis says where the job store is and how to get in.
type Redis struct {
	RedisAddrs    []string  `env:"REDIS_ADDR"` // each host:port; empty only in Local: embedded
	RedisMode     RedisMode `env:"REDIS_MODE" envDefault:"standalone"`
	RedisTLS      Switch    `env:"REDIS_TLS" envDefault:"off"`
	RedisAuth     RedisAuth `env:"REDIS_AUTH" envDefault:"none"`
	RedisUsername string    `env:"REDIS_USERNAME"`
	RedisPassword Secret    `env:"REDIS_PASSWORD"`
	// RedisCacheName is what an IAM token is signed for: the replication group's
	// id or the serverless cache's name.
	RedisCacheName string `env:"REDIS_IAM_CACHE_NAME"`
}

func (c *Redis) check(p *problems) {
	for i, a := range c.RedisAddrs {
		c.RedisAddrs[i] = strings.TrimSpace(a)
		if host, port, ok := split(c.RedisAddrs[i]); !ok || host == "" || port == 0 {
			// Not quoted: people paste URLs that hold a password.
			p.add("REDIS_ADDR", "entry %d is not host:port; write it as redis.example:6379, several separated by commas", i+1)
		}
	}
	if c.RedisMode == Standalone && len(c.RedisAddrs) > 1 && !p.bad("REDIS_MODE") {
		p.add("REDIS_ADDR", "has %d addresses but REDIS_MODE is standalone; give one, or set REDIS_MODE=cluster", len(c.RedisAddrs))
	}
	// A name with capitals is wrong under any REDIS_AUTH, whatever else is.
	defer c.checkCacheName(p)
	if p.bad("REDIS_AUTH") {
		return
	}
	switch c.RedisAuth {
	case AuthNone:
		c.unused(p, "REDIS_USERNAME", "REDIS_PASSWORD", "REDIS_IAM_CACHE_NAME")
	case AuthPassword:
		p.require("REDIS_PASSWORD", "REDIS_AUTH=password needs it")
		c.unused(p, "REDIS_IAM_CACHE_NAME")
	case AuthIAM:
		p.require("REDIS_USERNAME", "REDIS_AUTH=iam needs the IAM user's name")
		p.require("REDIS_IAM_CACHE_NAME", "REDIS_AUTH=iam needs the cache's name")
		c.unused(p, "REDIS_PASSWORD")
		if !bool(c.RedisTLS) && !p.bad("REDIS_TLS") {
			p.add("REDIS_TLS", "is off, but REDIS_AUTH=iam needs TLS; set REDIS_TLS=on")
		}
	}
}

// checkCacheName refuses capitals: the token is signed over the name as it
// stands, and ElastiCache keeps names in lower case.
// https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html
func (c *Redis) checkCacheName(p *problems) {
	if c.RedisCacheName != strings.ToLower(c.RedisCacheName) {
		p.add("REDIS_IAM_CACHE_NAME", "%s has capitals; write it in lower case", quoted(c.RedisCacheName))
	}
}

// unused refuses what would silently be ignored.
func (c *Redis) unused(p *problems, variables ...string) {
	for _, v := range variables {
		if p.set(v) {
			p.add(v, "is set, but REDIS_AUTH=%s does not use it; unset it or change REDIS_AUTH", c.RedisAuth)
		}
	}
}

// Table names the table of published results.
type Table struct {
	TableName string `env:"TABLE_NAME" envDefault:"sunhwa-comments"`
}

// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

func (c *Table) check(p *problems) {
	if !tableName.MatchString(c.TableName) {
		p.add("TABLE_NAME", "%s is no table name; use 3 to 255 letters, digits, _ . -", quoted(c.TableName))
	}
}

// Dispatch names the function that runs jobs: a name, an alias or an ARN.
type Dispatch struct {
	WorkerFunctionName string `env:"WORKER_FUNCTION_NAME" envDefault:"sunhwa-worker"`
}

// https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html (FunctionName)
var functionName = regexp.MustCompile(`^[a-zA-Z0-9:_$-]{1,170}$`)

func (c *Dispatch) check(p *problems) {
	if !functionName.MatchString(c.WorkerFunctionName) {
		p.add("WORKER_FUNCTION_NAME", "%s is no function name or ARN", quoted(c.WorkerFunctionName))
	}
	if c.WorkerName() == "" {
		p.add("WORKER_FUNCTION_NAME", "%s names no function; write it as sunhwa-worker or sunhwa-worker:live", quoted(c.WorkerFunctionName))
	}
}

// WorkerName is the worker's name alone, of a name, a name with an alias, or a
// whole or partial ARN.
func (c *Dispatch) WorkerName() string {
	name := c.WorkerFunctionName
	if i := strings.LastIndex(name, "function:"); i >= 0 {
		name = name[i+len("function:"):]
	}
	name, _, _ = strings.Cut(name, ":")
	return name
}

// Model is what start fixes in a job about the model.
type Model struct {
	LLMModel               string         `env:"LLM_MODEL"`
	LLMTemperature         *float64       `env:"LLM_TEMPERATURE"` // nil sends none; 0 to 2
	LLMMaxTokens           *int           `env:"LLM_MAX_TOKENS"`
	LLMMaxCompletionTokens *int           `env:"LLM_MAX_COMPLETION_TOKENS"`
	LLMResponseFormat      ResponseFormat `env:"LLM_RESPONSE_FORMAT"`
}

func (c *Model) check(p *problems) {
	if t := c.LLMTemperature; t != nil && (*t < 0 || *t > 2) {
		p.add("LLM_TEMPERATURE", "%v is outside 0 to 2", *t)
	}
	if c.LLMMaxTokens != nil {
		p.atLeast("LLM_MAX_TOKENS", *c.LLMMaxTokens, 1)
	}
	if c.LLMMaxCompletionTokens != nil {
		p.atLeast("LLM_MAX_COMPLETION_TOKENS", *c.LLMMaxCompletionTokens, 1)
	}
	if c.LLMMaxTokens != nil && c.LLMMaxCompletionTokens != nil {
		p.add("LLM_MAX_TOKENS", "is set together with LLM_MAX_COMPLETION_TOKENS; set the one your model takes")
	}
}

// LLM says where the model is. The key is given in clear or by the ARN of a
// Secrets Manager secret or an SSM parameter, never both.
type LLM struct {
	LLMBaseURL      string `env:"LLM_BASE_URL"`
	LLMAPIKey       Secret `env:"LLM_API_KEY"`
	LLMAPIKeySecret string `env:"LLM_API_KEY_SECRET_ARN"`
}

var keyARN = regexp.MustCompile(`^arn:aws[a-z-]*:(secretsmanager:[a-z0-9-]+:\d{12}:secret:|ssm:[a-z0-9-]+:\d{12}:parameter/)[^\s]+$`)

func (c *LLM) check(p *problems) {
	p.httpURL("LLM_BASE_URL", c.LLMBaseURL, "write it as https://llm.example/v1, the key in LLM_API_KEY")
	if c.LLMAPIKeySecret != "" {
		if !keyARN.MatchString(c.LLMAPIKeySecret) {
			p.add("LLM_API_KEY_SECRET_ARN", "is not the ARN of a Secrets Manager secret or an SSM parameter")
		}
		if c.LLMAPIKey != "" {
			p.add("LLM_API_KEY", "is set together with LLM_API_KEY_SECRET_ARN; set one of them")
		}
	}
	if strings.ContainsFunc(string(c.LLMAPIKey), func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		p.add("LLM_API_KEY", "holds a blank or a line break, which no HTTP header may; write the key alone")
	}
}

// Calls bounds how the worker asks the model.
type Calls struct {
	LLMConcurrency int           `env:"LLM_CONCURRENCY" envDefault:"16"` // of one job
	LLMTimeout     time.Duration `env:"LLM_TIMEOUT"`                     // of one call
	LLMMaxRetries  int           `env:"LLM_MAX_RETRIES" envDefault:"5"`  // of one comment; 0 asks once
	MaxJobTokens   int           `env:"MAX_JOB_TOKENS" envDefault:"0"`   // 0 is off
}

// checkWithin runs after deadline was checked.
func (c *Calls) checkWithin(p *problems, deadline time.Duration) {
	p.atLeast("LLM_CONCURRENCY", c.LLMConcurrency, 1)
	p.atLeast("LLM_MAX_RETRIES", c.LLMMaxRetries, 0)
	p.atLeast("MAX_JOB_TOKENS", c.MaxJobTokens, 0)
	p.inside("LLM_TIMEOUT", &c.LLMTimeout, defaultTimeout, deadline, deadline/2)
}

const (
	defaultTimeout = 60 * time.Second
	defaultLease   = 45 * time.Second
	// maxDeadline leaves a worker a minute of Lambda's 15 to start and to write
	// its end: https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
	maxDeadline  = 14 * time.Minute
	minRetention = 5 * time.Second
	// minDeadline is the least of which a quarter is still a millisecond, the
	// unit Redis counts in.
	minDeadline = 4 * time.Millisecond
)

// Job is a job's lifetimes.
type Job struct {
	JobDeadline    time.Duration `env:"JOB_DEADLINE" envDefault:"10m"`
	JobRetention   time.Duration `env:"JOB_RETENTION" envDefault:"24h"`
	JobLease       time.Duration `env:"JOB_LEASE"`
	JobMaxAttempts int           `env:"JOB_MAX_ATTEMPTS" envDefault:"3"`
}

func (c *Job) check(p *problems) {
	switch {
	case c.JobDeadline > maxDeadline:
		p.add("JOB_DEADLINE", "%s is above %s, which a Lambda cannot outlive; shorten it", c.JobDeadline, maxDeadline)
	case c.JobDeadline < minDeadline:
		p.add("JOB_DEADLINE", "%s is too short; give at least %s", c.JobDeadline, minDeadline)
	}
	if c.JobRetention < minRetention {
		p.add("JOB_RETENTION", "%s is below %s; lengthen it", c.JobRetention, minRetention)
	}
	p.inside("JOB_LEASE", &c.JobLease, defaultLease, c.JobDeadline, c.JobDeadline/4)
	p.atLeast("JOB_MAX_ATTEMPTS", c.JobMaxAttempts, 1)
}

// Memo bounds the answers remembered for a target; Limits has it too.
type Memo struct {
	MaxComments int `env:"MAX_COMMENTS" envDefault:"1000"`
}

// maxComments is what the four digits of a published row's sort key can number.
const maxComments = 10_000

func (c *Memo) check(p *problems) {
	p.atLeast("MAX_COMMENTS", c.MaxComments, 1)
	if c.MaxComments > maxComments {
		p.add("MAX_COMMENTS", "%d is above %d", c.MaxComments, maxComments)
	}
}

// Limits bounds one start request.
type Limits struct {
	Memo
	MaxCommentChars int `env:"MAX_COMMENT_CHARS" envDefault:"2000"` // code points
	MaxBodyBytes    int `env:"MAX_BODY_BYTES" envDefault:"2000000"` // decoded
}

// maxBody is Lambda's own limit of one synchronous request:
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const maxBody = 6_291_456

func (c *Limits) check(p *problems) {
	c.Memo.check(p)
	p.atLeast("MAX_COMMENT_CHARS", c.MaxCommentChars, 1)
	p.atLeast("MAX_BODY_BYTES", c.MaxBodyBytes, 1)
	if c.MaxBodyBytes > maxBody {
		p.add("MAX_BODY_BYTES", "%d is above %d, which Lambda does not take", c.MaxBodyBytes, maxBody)
	}
}

// Tenant names the claim of the verified caller that is the tenant; empty means
// the one tenant "default".
type Tenant struct {
	TenantClaim string `env:"TENANT_CLAIM"`
}

func (c *Tenant) check(p *problems) {
	invisible := func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
	if !utf8.ValidString(c.TenantClaim) || strings.ContainsFunc(c.TenantClaim, invisible) {
		p.add("TENANT_CLAIM", "%s holds a blank, a control character or bytes that are no text; give one claim's name", quoted(c.TenantClaim))
	}
}

func (p *problems) atLeast(variable string, n, least int) {
	if n < least {
		p.add(variable, "%d is too small; give %d or more", n, least)
	}
}

// inside fills in a duration that must stay below the deadline: usual, or short
// where usual would not be below it. An explicit value is taken as it is or
// refused. Under a bad deadline it is held against the longest there may be: what
// is wrong under every deadline is reported beside it.
func (p *problems) inside(variable string, d *time.Duration, usual, deadline, short time.Duration) {
	switch {
	case p.bad(variable):
	case !p.set(variable):
		*d = usual
		if usual >= deadline {
			*d = short
		}
	case *d < time.Millisecond:
		p.add(variable, "%s is too short; give at least 1ms", *d)
	case p.bad("JOB_DEADLINE"):
		if *d >= maxDeadline {
			p.add(variable, "%s is not below any JOB_DEADLINE (at most %s); shorten it", *d, maxDeadline)
		}
	case *d >= deadline:
		p.add(variable, "%s is not below JOB_DEADLINE (%s); shorten it", *d, deadline)
	}
}

// httpURL refuses a value that is neither empty nor an absolute http or https URL
// of a host, with at most a port and a path. It does not show the value: people
// paste URLs that hold a password.
func (p *problems) httpURL(variable, value, how string) {
	if value == "" {
		return
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || !validPort(u.Port()):
		p.add(variable, "is not an http or https URL; %s", how)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		p.add(variable, "holds a user, a query or a fragment; %s", how)
	}
}

// validPort reports whether a URL's port is absent or a number that TCP knows.
func validPort(digits string) bool {
	n, err := strconv.ParseUint(digits, 10, 16)
	return digits == "" || err == nil && n > 0
}

// split takes host:port apart.
func split(a string) (host string, port uint64, ok bool) {
	host, digits, err := net.SplitHostPort(a)
	if err != nil || strings.ContainsAny(host, "/@ ") {
		return "", 0, false
	}
	port, err = strconv.ParseUint(digits, 10, 16)
	return host, port, err == nil
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

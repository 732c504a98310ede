//go:build sam

package samtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// checks are what CI holds a template to, by name. Each returns what is wrong.
var checks = map[string]func(*model) []string{
	"translates":  func(m *model) []string { return m.errs },
	"cfn-lint":    func(m *model) []string { return m.lint },
	"schedule":    scheduleGrammar,
	"bootstrap":   bootstrapHandlers,
	"nested":      nestedStacks,
	"star":        starsHaveReasons,
	"permissions": leastPermissions,
	"environment": environments,
	"env file":    localEnvironment,
	"logs":        logRetention,
	"encryption":  encrypted,
	"public":      nothingPublic,
	"routes":      routesAreTheGateways,
	"start-api":   startAPIFindsTheRoutes,
	"authorizer":  everyRouteAuthorizes,
	"async":       asyncInvocation,
	"cache":       cacheKeepsJobs,
	"build":       buildTargets,
}

const lambdaFunction = "AWS::Lambda::Function"

// names of the functions as the template knows them, and what each may do. A
// policy that allows more, or less, is a decision to be taken here too.
var allowed = map[string][]string{
	"StartFunction":  {"elasticache:Connect", "lambda:InvokeFunction"},
	"WorkerFunction": {"elasticache:Connect", "kms:Decrypt", "secretsmanager:GetSecretValue", "ssm:GetParameter", "sqs:SendMessage"},
	"StatusFunction": {"elasticache:Connect"},
	"ApplyFunction": {
		"dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "elasticache:Connect",
	},
	"CommentsFunction": {
		"dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "elasticache:Connect",
	},
	"SweeperFunction": {"elasticache:Connect", "lambda:InvokeFunction"},
}

func functionNames() []string { return slices.Sorted(maps.Keys(allowed)) }

// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html:
// a rate of one is in the singular, any other in the plural.
var scheduleExpression = regexp.MustCompile(`^(rate\((1 (minute|hour|day)|([2-9]|[1-9]\d+) (minutes|hours|days))\)|cron\((\S+ ){5}\S+\))$`)

func scheduleGrammar(m *model) (bad []string) {
	rules := ofType(m.byMode["IAM"], "AWS::Events::Rule", "AWS::Scheduler::Schedule")
	for name, r := range rules {
		if s := fmt.Sprint(at(r, "Properties", "ScheduleExpression")); !scheduleExpression.MatchString(s) {
			bad = append(bad, fmt.Sprintf("%s: no schedule that AWS takes: %q", name, s))
		}
	}
	if len(rules) != 1 {
		bad = append(bad, fmt.Sprintf("%d schedules; the sweeper has one", len(rules)))
	}
	return bad
}

func bootstrapHandlers(m *model) (bad []string) {
	functions := ofType(m.byMode["IAM"], lambdaFunction)
	if got := keys(functions); !slices.Equal(got, functionNames()) {
		bad = append(bad, fmt.Sprintf("functions %v, want %v", got, functionNames()))
	}
	for name, f := range functions {
		if h := at(f, "Properties", "Handler"); h != "bootstrap" {
			bad = append(bad, fmt.Sprintf("%s: Handler %v; sam build writes bootstrap", name, h))
		}
		if r := at(f, "Properties", "Runtime"); r != "provided.al2023" {
			bad = append(bad, fmt.Sprintf("%s: Runtime %v", name, r))
		}
		if a := fmt.Sprint(eval(m.byMode["IAM"], m.given["IAM"], at(f, "Properties", "Architectures"))); a != "[arm64]" {
			bad = append(bad, fmt.Sprintf("%s: Architectures %s; the default is arm64", name, a))
		}
		if at(f, "Properties", "VpcConfig", "SubnetIds") == nil {
			bad = append(bad, name+": outside the VPC, where Redis is")
		}
	}
	return bad
}

// nestedStacks: every nested file is there, is used, is given the parameters it
// has and needs, and has the outputs that are asked of it.
func nestedStacks(m *model) (bad []string) {
	t := m.byMode["IAM"]
	used := map[string]bool{}
	for name, s := range ofType(t, "AWS::CloudFormation::Stack", "AWS::Serverless::Application") {
		file := fmt.Sprint(at(s, "Properties", "TemplateURL"))
		stack, ok := m.nested[file]
		used[file] = true
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: there is no %s", name, file))
			continue
		}
		given := fields(at(s, "Properties", "Parameters"))
		for p, d := range fields(stack["Parameters"]) {
			if _, has := fields(d)["Default"]; given[p] == nil && !has {
				bad = append(bad, fmt.Sprintf("%s: %s needs %s", name, file, p))
			}
		}
		for p := range given {
			if at(stack, "Parameters", p) == nil {
				bad = append(bad, fmt.Sprintf("%s: %s has no parameter %s", name, file, p))
			}
		}
		for _, m := range regexp.MustCompile(name+`\.Outputs\.(\w+)`).FindAllStringSubmatch(m.texts["template.yaml"], -1) {
			if at(stack, "Outputs", m[1]) == nil {
				bad = append(bad, fmt.Sprintf("%s: %s has no output %s", name, file, m[1]))
			}
		}
	}
	for file := range m.nested {
		if !used[file] {
			bad = append(bad, file+" is used by nothing")
		}
	}
	return bad
}

// statements calls f with every IAM statement of a template.
func statements(v any, f func(object)) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			statements(e, f)
		}
	case object:
		if x["Effect"] != nil && (x["Action"] != nil || x["NotAction"] != nil) {
			f(x)
		}
		for _, e := range x {
			statements(e, f)
		}
	}
}

// wide says whether a resource of a policy leaves open which one is meant.
func wide(v any) bool {
	s := fmt.Sprint(v)
	if o := fields(v); o != nil {
		s = fmt.Sprint(list(o["Fn::Sub"])...)
	}
	return s == "*" || strings.HasSuffix(s, ":*")
}

var (
	wideLine = regexp.MustCompile(`(?m)^\s*(- )*(Resource:|-) .*(\*"?\]?|:\*)(\s+#\s*(\S.*))?$`)
	reason   = regexp.MustCompile(`\*"?\]?\s+# \S`)
)

// starsHaveReasons: a statement that allows something on every resource says why
// on the same line, and none allows everything.
func starsHaveReasons(m *model) (bad []string) {
	documents := map[string]object{"template.yaml": m.byMode["IAM"]}
	maps.Copy(documents, m.nested)
	for file, d := range documents {
		stars := 0
		statements(d["Resources"], func(s object) {
			if s["Effect"] != "Allow" {
				return
			}
			for _, a := range list(s["Action"]) {
				if a == "*" || s["NotAction"] != nil {
					bad = append(bad, fmt.Sprintf("%s: %v allows every action", file, s["Sid"]))
				}
			}
			for _, r := range list(s["Resource"]) {
				if wide(r) {
					stars++
				}
			}
		})
		reasons := 0
		for _, line := range wideLine.FindAllString(m.texts[file], -1) {
			if !reason.MatchString(line) {
				bad = append(bad, fmt.Sprintf("%s: no reason beside %q", file, strings.TrimSpace(line)))
			}
			reasons++
		}
		if stars > reasons {
			bad = append(bad, fmt.Sprintf("%s: %d resources are *, %d have a line of their own with a reason", file, stars, reasons))
		}
	}
	return bad
}

// leastPermissions: what each function's role allows is what the table above says,
// and AWS's managed policies are the three that SAM adds for logs, network and traces.
func leastPermissions(m *model) (bad []string) {
	t := m.byMode["IAM"]
	for _, name := range functionNames() {
		role := at(t, "Resources", name+"Role", "Properties")
		var actions []string
		statements(at(role, "Policies"), func(s object) {
			for _, a := range list(s["Action"]) {
				actions = append(actions, fmt.Sprint(a))
			}
		})
		slices.Sort(actions)
		want := slices.Sorted(slices.Values(allowed[name]))
		if !slices.Equal(actions, want) {
			bad = append(bad, fmt.Sprintf("%s may %v, want %v", name, actions, want))
		}
		for _, p := range list(at(role, "ManagedPolicyArns")) {
			s := fmt.Sprint(eval(t, m.given["IAM"], p))
			if !strings.HasSuffix(s, "/AWSLambdaBasicExecutionRole") && !strings.HasSuffix(s, "/AWSLambdaVPCAccessExecutionRole") &&
				!strings.HasSuffix(s, "/AWSXRayDaemonWriteAccess") && !strings.HasSuffix(s, "/AWSXrayWriteOnlyAccess") {
				bad = append(bad, fmt.Sprintf("%s has the policy %s", name, s))
			}
		}
	}
	return bad
}

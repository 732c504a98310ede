//go:build sam

package samtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sunhwa/infra/local/gateway"
	"sunhwa/shared/config"
)

// reader is what a function's configuration asks for and how it takes it.
type reader struct {
	variables, required []string
	load                func(map[string]string) error
}

var readers = map[string]reader{
	"StartFunction": {config.Variables[config.Start](), config.Required[config.Start](), func(e map[string]string) error {
		_, err := config.Load[config.Start](e)
		return err
	}},
	"WorkerFunction": {config.Variables[config.Worker](), config.Required[config.Worker](), func(e map[string]string) error {
		_, err := config.Load[config.Worker](e)
		return err
	}},
	"StatusFunction": {config.Variables[config.Status](), config.Required[config.Status](), func(e map[string]string) error {
		_, err := config.Load[config.Status](e)
		return err
	}},
	"ApplyFunction": {config.Variables[config.Apply](), config.Required[config.Apply](), func(e map[string]string) error {
		_, err := config.Load[config.Apply](e)
		return err
	}},
	"CommentsFunction": {config.Variables[config.Comments](), config.Required[config.Comments](), func(e map[string]string) error {
		_, err := config.Load[config.Comments](e)
		return err
	}},
	"SweeperFunction": {config.Variables[config.Sweeper](), config.Required[config.Sweeper](), func(e map[string]string) error {
		_, err := config.Load[config.Sweeper](e)
		return err
	}},
}

// sdk are the variables that the AWS SDK reads by itself.
var sdk = []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_LAMBDA", "AWS_USE_DUALSTACK_ENDPOINT"}

// environments: every function is given every variable it reads, none besides
// those, and loads its configuration from them under each kind of deploy.
func environments(m *model) (bad []string) {
	kinds := map[string]map[string]any{
		"a cache of its own": {},
		"another's Redis, by IAM": {
			"ExistingRedisAddr": "r.example:6379", "ExistingRedisUser": "app", "ExistingRedisCacheName": "theirs",
		},
		"another's Redis, by password": {
			"ExistingRedisAddr": "r.example:6379", "ExistingRedisAuth": "password", "ExistingRedisPasswordSecretArn": "arn:x",
		},
		"another's single Redis, with neither": {
			"ExistingRedisAddr": "r.example:6379", "ExistingRedisAuth": "none", "ExistingRedisMode": "standalone", "ExistingRedisTls": "off",
		},
		"every setting": {
			"LlmTemperature": "0.2", "LlmMaxTokens": "500", "LlmResponseFormat": "text", "LlmTimeout": "20s", "JobLease": "30s",
			"DeadlineSeconds": 840, "Egress": "IPv6",
		},
		"the shortest deadline": {"DeadlineSeconds": 60},
	}
	for mode, params := range m.given {
		for kind, more := range kinds {
			p := maps.Clone(params)
			maps.Copy(p, more)
			for name, r := range readers {
				env := m.environment(mode, name, p)
				for _, v := range r.variables {
					if _, ok := env[v]; !ok {
						bad = append(bad, fmt.Sprintf("%s reads %s, which the template does not give", name, v))
					}
				}
				for _, v := range r.required {
					if env[v] == "" && (v != "LLM_API_KEY" || env["LLM_API_KEY_SECRET_ARN"] == "") {
						bad = append(bad, fmt.Sprintf("%s needs %s", name, v))
					}
				}
				for v := range env {
					if !slices.Contains(r.variables, v) && !slices.Contains(sdk, v) {
						bad = append(bad, fmt.Sprintf("%s is given %s, which nothing reads", name, v))
					}
				}
				replace(env, "REDIS_ADDR", "<Cache.Outputs.Address>", "cache.example:6379")
				replace(env, "TABLE_NAME", "<Table>", "table")
				replace(env, "WORKER_FUNCTION_NAME", "<WorkerFunction>", "stack-worker")
				if err := r.load(env); err != nil {
					bad = append(bad, fmt.Sprintf("%s (%s, %s): %v", name, mode, kind, err))
				}
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

func replace(env map[string]string, name, old, with string) {
	if env[name] == old {
		env[name] = with
	}
}

// localEnvironment: sam local passes on only variables that the template names, and
// with them every function loads.
func localEnvironment(m *model) (bad []string) {
	var file map[string]map[string]string
	if err := json.Unmarshal([]byte(m.texts["infra/env.local.json"]), &file); err != nil {
		return []string{err.Error()}
	}
	for name, r := range readers {
		env := m.environment("IAM", name, m.given["IAM"])
		for v, value := range file[name] {
			if _, ok := env[v]; !ok {
				bad = append(bad, fmt.Sprintf("%s: sam local drops %s, which the template does not have", name, v))
			}
			env[v] = value
		}
		replace(env, "TABLE_NAME", "<Table>", "missing in the file")
		replace(env, "WORKER_FUNCTION_NAME", "<WorkerFunction>", "missing in the file")
		if err := r.load(env); err != nil {
			bad = append(bad, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return bad
}

// logRetention: nothing logs for ever, and no function makes its log group itself.
func logRetention(m *model) (bad []string) {
	t, groups := m.byMode["IAM"], map[string]string{}
	for name, g := range ofType(t, "AWS::Logs::LogGroup") {
		if at(g, "Properties", "RetentionInDays") == nil {
			bad = append(bad, name+" keeps its lines for ever")
		}
		groups[fmt.Sprint(eval(t, m.given["IAM"], at(g, "Properties", "LogGroupName")))] = name
	}
	for name, f := range ofType(t, lambdaFunction) {
		group := groups[fmt.Sprintf("/aws/lambda/%v", eval(t, m.given["IAM"], at(f, "Properties", "FunctionName")))]
		switch {
		case group == "":
			bad = append(bad, name+" has no log group of the template's")
		case !slices.Contains(list(at(f, "DependsOn")), any(group)):
			bad = append(bad, fmt.Sprintf("%s may log before %s is there", name, group))
		}
	}
	if at(t, "Resources", "Stage", "Properties", "AccessLogSettings", "DestinationArn") == nil {
		bad = append(bad, "the API has no access log")
	}
	return bad
}

// encrypted: at rest and in transit, everything that holds or carries a text.
func encrypted(m *model) (bad []string) {
	want := func(file, name string, r any, value any, path ...string) {
		if got := at(r, append([]string{"Properties"}, path...)...); fmt.Sprint(got) != fmt.Sprint(value) {
			bad = append(bad, fmt.Sprintf("%s: %s has %s %v, want %v", file, name, strings.Join(path, "."), got, value))
		}
	}
	documents := map[string]object{"template.yaml": m.byMode["IAM"]}
	maps.Copy(documents, m.nested)
	for file, d := range documents {
		for name, r := range ofType(d, "AWS::ElastiCache::ReplicationGroup") {
			want(file, name, r, true, "AtRestEncryptionEnabled")
			want(file, name, r, true, "TransitEncryptionEnabled")
			want(file, name, r, "required", "TransitEncryptionMode")
		}
		for name, r := range ofType(d, "AWS::SQS::Queue") {
			want(file, name, r, true, "SqsManagedSseEnabled")
			if !strings.Contains(fmt.Sprint(d["Resources"]), "aws:SecureTransport") {
				bad = append(bad, name+" may be reached without TLS")
			}
		}
		for name, r := range ofType(d, "AWS::SNS::Topic") {
			if at(r, "Properties", "KmsMasterKeyId") == nil {
				bad = append(bad, name+" is not encrypted")
			}
		}
		for name, r := range ofType(d, "AWS::DynamoDB::Table") {
			want(file, name, r, true, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")
			if s := at(r, "Properties", "SSESpecification", "SSEEnabled"); s != nil && s != true {
				bad = append(bad, name+" switches encryption off")
			}
		}
	}
	for _, name := range functionNames() {
		if tls := m.environment("IAM", name, m.given["IAM"])["REDIS_TLS"]; tls != "on" {
			bad = append(bad, fmt.Sprintf("%s has REDIS_TLS=%s by default", name, tls))
		}
	}
	if url := m.environment("IAM", "WorkerFunction", m.given["IAM"])["LLM_BASE_URL"]; !strings.HasPrefix(url, "https://") {
		bad = append(bad, "the model is reached at "+url)
	}
	return bad
}

// nothingPublic: nobody outside reaches anything but the API.
func nothingPublic(m *model) (bad []string) {
	documents := map[string]object{"template.yaml": m.byMode["IAM"]}
	maps.Copy(documents, m.nested)
	for file, d := range documents {
		for name, r := range ofType(d, "AWS::EC2::SecurityGroup") {
			for _, rule := range list(at(r, "Properties", "SecurityGroupIngress")) {
				if cidr := fmt.Sprint(at(rule, "CidrIp"), at(rule, "CidrIpv6")); strings.Contains(cidr, "/0") {
					bad = append(bad, fmt.Sprintf("%s: %s lets everybody in", file, name))
				}
			}
		}
		for name := range ofType(d, "AWS::EC2::SecurityGroupIngress", "AWS::Lambda::Url", "AWS::S3::Bucket", "AWS::ElasticLoadBalancingV2::LoadBalancer") {
			bad = append(bad, fmt.Sprintf("%s: %s was not thought of", file, name))
		}
		for name, r := range ofType(d, "AWS::EC2::Subnet") {
			if at(r, "Properties", "MapPublicIpOnLaunch") == true {
				bad = append(bad, fmt.Sprintf("%s: %s gives public addresses", file, name))
			}
		}
		for name, r := range ofType(d, "AWS::Lambda::Permission") {
			if at(r, "Properties", "SourceArn") == nil {
				bad = append(bad, fmt.Sprintf("%s: %s lets any caller of the service in", file, name))
			}
		}
		statements(d["Resources"], func(s object) {
			if p := s["Principal"]; s["Effect"] == "Allow" && (p == "*" || at(p, "AWS") == "*") {
				bad = append(bad, fmt.Sprintf("%s: a policy for everybody", file))
			}
		})
	}
	return bad
}

// routesAreTheGateways: the template's routes are the local gateway's, each to the
// same function, and each function may be called by the API.
func routesAreTheGateways(m *model) (bad []string) {
	t := m.byMode["IAM"]
	have := map[string]string{}
	for name, r := range ofType(t, "AWS::ApiGatewayV2::Route") {
		target := fmt.Sprint(eval(t, nil, at(r, "Properties", "Target")))
		integration := strings.Trim(strings.TrimPrefix(target, "integrations/"), "<>")
		uri := fmt.Sprint(at(t, "Resources", integration, "Properties", "IntegrationUri"))
		function := ""
		for _, f := range functionNames() {
			if strings.Contains(uri, "${"+f+"}/invocations") || strings.Contains(uri, "${"+f+".Arn}/invocations") {
				function = strings.ToLower(strings.TrimSuffix(f, "Function"))
			}
		}
		if v := at(t, "Resources", integration, "Properties", "PayloadFormatVersion"); v != "2.0" {
			bad = append(bad, fmt.Sprintf("%s: payload format %v", integration, v))
		}
		key := fmt.Sprint(at(r, "Properties", "RouteKey"))
		if have[key] != "" {
			bad = append(bad, fmt.Sprintf("%s: %s stands twice", name, key))
		}
		have[key] = function
	}
	want := map[string]string{}
	for _, r := range gateway.Routes() {
		want[r.Key] = r.Function
	}
	if !maps.Equal(have, want) {
		bad = append(bad, fmt.Sprintf("routes %v, the local gateway has %v", have, want))
	}
	callable := map[string]bool{}
	for _, p := range ofType(t, "AWS::Lambda::Permission") {
		if at(p, "Properties", "Principal") == "apigateway.amazonaws.com" {
			callable[strings.ToLower(strings.TrimSuffix(fmt.Sprint(at(p, "Properties", "FunctionName", "Ref")), "Function"))] = true
		}
	}
	for key, function := range want {
		if !callable[function] {
			bad = append(bad, fmt.Sprintf("%s: the API may not call %s", key, function))
		}
	}
	return bad
}

// startAPIFindsTheRoutes: sam local's own reading of the template has every route.
func startAPIFindsTheRoutes(m *model) (bad []string) {
	var want []string
	for _, r := range gateway.Routes() {
		want = append(want, fmt.Sprintf("%s %s%sFunction", r.Key, strings.ToUpper(r.Function[:1]), r.Function[1:]))
	}
	slices.Sort(want)
	if !slices.Equal(m.local, want) {
		bad = append(bad, fmt.Sprintf("sam local start-api finds %q", m.local))
	}
	return bad
}

// everyRouteAuthorizes: in either mode no route is open.
func everyRouteAuthorizes(m *model) (bad []string) {
	for mode, want := range map[string]string{"IAM": "AWS_IAM", "JWT": "JWT"} {
		t, params := m.byMode[mode], m.given[mode]
		for name, r := range ofType(t, "AWS::ApiGatewayV2::Route") {
			p := fields(eval(t, params, at(r, "Properties")))
			if p["AuthorizationType"] != want {
				bad = append(bad, fmt.Sprintf("%s under %s: AuthorizationType %v", name, mode, p["AuthorizationType"]))
			}
			if id := fmt.Sprint(p["AuthorizerId"]); (mode == "JWT") != (id == "<JwtAuthorizer>") {
				bad = append(bad, fmt.Sprintf("%s under %s: AuthorizerId %s", name, mode, id))
			}
		}
		if made := truth(t, params, object{"Condition": at(t, "Resources", "JwtAuthorizer", "Condition")}); made != (mode == "JWT") {
			bad = append(bad, fmt.Sprintf("under %s the JWT authorizer is made: %v", mode, made))
		}
		for _, f := range []string{"StartFunction", "StatusFunction", "ApplyFunction", "CommentsFunction"} {
			if m.environment(mode, f, params)["TENANT_CLAIM"] == "" {
				bad = append(bad, fmt.Sprintf("%s under %s: no TENANT_CLAIM: all callers would be one tenant", f, mode))
			}
		}
	}
	return bad
}

// asyncInvocation: the worker's events live as long as their jobs may, and what
// Lambda gives up goes to the queue.
func asyncInvocation(m *model) (bad []string) {
	t := m.byMode["IAM"]
	// SAM puts parameters in while it translates; which one is meant stands in the source.
	c := at(m.source, "Resources", "WorkerFunction", "Properties", "EventInvokeConfig")
	if c == nil {
		bad = append(bad, "the worker has no EventInvokeConfig")
	}
	for _, seconds := range []any{60, 840} {
		params := maps.Clone(m.given["IAM"])
		params["DeadlineSeconds"] = seconds
		age := fmt.Sprint(eval(t, params, at(c, "MaximumEventAgeInSeconds"))) + "s"
		if deadline := m.environment("IAM", "StartFunction", params)["JOB_DEADLINE"]; age != deadline {
			bad = append(bad, fmt.Sprintf("an event may wait %s, its job lives %s", age, deadline))
		}
	}
	made := 0
	for _, c := range ofType(t, "AWS::Lambda::EventInvokeConfig") {
		p := at(c, "Properties")
		if at(p, "FunctionName", "Ref") != "WorkerFunction" {
			continue
		}
		made++
		if n := fmt.Sprint(at(p, "MaximumRetryAttempts")); n != "1" {
			bad = append(bad, "MaximumRetryAttempts "+n)
		}
		if d := fmt.Sprint(eval(t, nil, at(p, "DestinationConfig", "OnFailure", "Destination"))); d != "<FailedEvents.Arn>" {
			bad = append(bad, "what is given up goes to "+d)
		}
	}
	if made != 1 {
		bad = append(bad, fmt.Sprintf("SAM makes %d invocation configurations of the worker", made))
	}
	// A worker must outlive its job's deadline to write how it ended.
	number := func(name, bound string) int {
		n, _ := strconv.Atoi(fmt.Sprint(at(t, "Parameters", name, bound)))
		return n
	}
	if number("WorkerTimeoutSeconds", "Default") < number("DeadlineSeconds", "Default")+15 || number("DeadlineSeconds", "MaxValue") > 840 {
		bad = append(bad, "a worker's time may end before its job's deadline")
	}
	return bad
}

// cacheKeepsJobs: the cache is a cluster and evicts nothing.
func cacheKeepsJobs(m *model) (bad []string) {
	groups := ofType(m.nested["infra/cache.yaml"], "AWS::ElastiCache::ParameterGroup")
	for name, g := range groups {
		p := at(g, "Properties", "Properties")
		if at(p, "maxmemory-policy") != "noeviction" || at(p, "cluster-enabled") != "yes" {
			bad = append(bad, fmt.Sprintf("%s: %v", name, p))
		}
	}
	if len(groups) == 0 {
		bad = append(bad, "no parameter group: ElastiCache's default evicts")
	}
	if d := at(m.byMode["IAM"], "Parameters", "CacheReplicas", "Default"); fmt.Sprint(d) == "0" {
		bad = append(bad, "no replica by default")
	}
	return bad
}

// buildTargets: sam build finds a target for every function, for each architecture,
// and every environment of samconfig.toml builds afresh and in place.
func buildTargets(m *model) (bad []string) {
	for _, name := range functionNames() {
		r := at(m.byMode["IAM"], "Resources", name)
		if at(r, "Metadata", "BuildMethod") != "makefile" {
			bad = append(bad, name+" is not built by the Makefile")
		}
		for _, arch := range list(at(m.byMode["IAM"], "Parameters", "Architecture", "AllowedValues")) {
			folder := fmt.Sprint(eval(nil, map[string]any{"Architecture": arch}, at(r, "Metadata", "ContextPath")))
			goarch := strings.NewReplacer("x86_64", "amd64").Replace(fmt.Sprint(arch))
			if mk := m.texts[folder+"/Makefile"]; !strings.Contains(mk, "\nARCH := "+goarch+"\ninclude Makefile\n") {
				bad = append(bad, fmt.Sprintf("%s: %s/Makefile does not build for %s", name, folder, goarch))
			}
		}
		if !strings.Contains(m.texts["Makefile"], "\nbuild-"+name+":\n") {
			bad = append(bad, "the Makefile has no target build-"+name)
		}
	}
	config := m.texts["samconfig.toml"]
	for _, env := range []string{"default", "trial", "prod", "local"} {
		_, section, _ := strings.Cut(config, "\n["+env+".build.parameters]\n")
		section, _, _ = strings.Cut(section, "\n[")
		for _, line := range []string{"cached = false", "build_in_source = true"} {
			if !strings.Contains(section, line) {
				bad = append(bad, fmt.Sprintf("samconfig.toml: %s has no %q", env, line))
			}
		}
	}
	return bad
}

//go:build sam

package samtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sunhwa/infra/testkit"
)

// model is one version of the template, as the checks see it: its texts, what SAM
// makes of it under each way of authorizing callers, and its nested stacks.
type model struct {
	dir    string
	texts  map[string]string         // template.yaml, infra/*.yaml, Makefile, samconfig.toml, ...
	source object                    // the template before SAM
	byMode map[string]object         // IAM and JWT: the translated template
	nested map[string]object         // infra/*.yaml
	errs   []string                  // why SAM refuses the template
	lint   []string                  // cfn-lint's findings
	local  []string                  // the routes that sam local start-api finds
	given  map[string]map[string]any // by mode: parameters of the deploy, defaults included
}

type object = map[string]any

// deploys are the parameters that each way of deploying gives.
func deploys() map[string]map[string]any {
	return map[string]map[string]any{
		"IAM": {"AuthMode": "IAM", "LlmModel": "m", "LlmApiKeySecretArn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:llm-AbCdEf"},
		"JWT": {
			"AuthMode": "JWT", "JwtIssuer": "https://login.example.com/", "JwtAudience": "sunhwa", "TenantClaim": "tenant",
			"LlmModel": "m", "LlmApiKey": "k",
		},
	}
}

// answer is what translate.py writes.
type answer struct {
	Source   object            `json:"source"`
	Template object            `json:"template"`
	Nested   map[string]object `json:"nested"`
	Error    string            `json:"error"`
	Lint     []string          `json:"lint"`
	Routes   []string          `json:"routes"`
}

type ask struct {
	Dir        string         `json:"dir"`
	Parameters map[string]any `json:"parameters"`
	Lint       []string       `json:"lint"`
	Local      bool           `json:"local"`
}

// wanted is what a version of the template is asked about besides translation.
type wanted struct {
	lint  []string // files for cfn-lint
	local bool     // the routes that sam local start-api finds
	// quick translates it once, for IAM, and takes that for both: the two differ in
	// what conditions come to, which is seen either way.
	quick bool
}

var modes = []string{"IAM", "JWT"}

// copied are the files that a mutation may edit and the checks read.
func copied(t testing.TB, root string) map[string]string {
	t.Helper()
	paths := []string{"template.yaml", "samconfig.toml", "Makefile", "infra/env.local.json"}
	for _, pattern := range []string{"infra/*.yaml", "infra/make/*/Makefile", "events/*.json"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, f := range found {
			rel, err := filepath.Rel(root, f)
			require.NoError(t, err)
			paths = append(paths, rel)
		}
	}
	texts := map[string]string{}
	for _, p := range paths {
		b, err := os.ReadFile(filepath.Join(root, p))
		require.NoError(t, err)
		texts[p] = string(b)
	}
	return texts
}

// models reads several versions of the template, each a set of texts, with one
// run of Python.
func models(t testing.TB, versions []map[string]string, want []wanted) []*model {
	t.Helper()
	type place struct {
		m    *model
		mode string
	}
	var all []*model
	var asks []ask
	var places []place
	for i, texts := range versions {
		m := &model{dir: t.TempDir(), texts: texts, byMode: map[string]object{}, given: map[string]map[string]any{}}
		for path, s := range texts {
			full := filepath.Join(m.dir, path)
			require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o750))
			require.NoError(t, os.WriteFile(full, []byte(s), 0o600))
		}
		for _, mode := range modes {
			a := ask{Dir: m.dir, Parameters: deploys()[mode], Lint: []string{}}
			if mode == modes[0] {
				a.Lint = append(a.Lint, want[i].lint...)
				a.Local = want[i].local
			}
			if mode == modes[0] || !want[i].quick {
				asks, places = append(asks, a), append(places, place{m, mode})
			}
		}
		all = append(all, m)
	}
	in, err := json.Marshal(asks)
	require.NoError(t, err)
	var answers []answer
	decoder := json.NewDecoder(bytes.NewReader(python(t, in, "infra/samtest/translate.py")))
	decoder.UseNumber() // 2000000 must stay what it is
	require.NoError(t, decoder.Decode(&answers))
	require.Len(t, answers, len(places))
	for i, a := range answers {
		m, mode := places[i].m, places[i].mode
		m.source, m.nested = a.Source, a.Nested
		m.byMode[mode] = a.Template
		if a.Error != "" {
			m.errs = append(m.errs, mode+": "+a.Error)
		}
		m.lint = append(m.lint, a.Lint...)
		m.local = append(m.local, a.Routes...)
	}
	for _, m := range all {
		for _, mode := range modes {
			if m.byMode[mode] == nil {
				m.byMode[mode] = m.byMode[modes[0]]
			}
			m.given[mode] = maps.Clone(deploys()[mode])
			for name, p := range fields(m.byMode[mode]["Parameters"]) {
				if d, ok := fields(p)["Default"]; ok && m.given[mode][name] == nil {
					m.given[mode][name] = d
				}
			}
		}
	}
	return all
}

// python runs one of this folder's scripts where SAM is installed.
func python(t testing.TB, stdin []byte, script string) []byte {
	t.Helper()
	root := rootFolder(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".tools/sam/bin/python"), filepath.Join(root, script))
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoErrorf(t, err, "run: make sam-test (it installs the SAM CLI into .tools)\n%s", &stderr)
	return out
}

func rootFolder(t testing.TB) string {
	t.Helper()
	root, err := testkit.Root()
	require.NoError(t, err)
	return root
}

// sam runs the SAM CLI in dir and returns what it printed.
func sam(ctx context.Context, root, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, ".tools/sam/bin/sam"), args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "SAM_CLI_TELEMETRY=0", "AWS_DEFAULT_REGION=us-east-1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("sam %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// fields returns v as an object, or nil.
func fields(v any) object {
	o, _ := v.(object)
	return o
}

// at walks down objects.
func at(v any, path ...string) any {
	for _, p := range path {
		v = fields(v)[p]
	}
	return v
}

// list returns v as a list; one thing that is no list is a list of it.
func list(v any) []any {
	switch l := v.(type) {
	case nil:
		return nil
	case []any:
		return l
	default:
		return []any{l}
	}
}

func keys(o object) []string { return slices.Sorted(maps.Keys(o)) }

// ofType returns the resources of a template that have one of the types.
func ofType(template object, types ...string) object {
	out := object{}
	for name, r := range fields(template["Resources"]) {
		if slices.Contains(types, fmt.Sprint(at(r, "Type"))) {
			out[name] = r
		}
	}
	return out
}

var substituted = regexp.MustCompile(`\$\{([A-Za-z0-9:.]+)\}`)

// eval replaces intrinsics by what they come to under the parameters: a reference
// to a resource becomes "<Name>", its attribute "<Name.Attribute>"; what is left
// out by AWS::NoValue becomes nil.
func eval(template object, params map[string]any, v any) any {
	again := func(x any) any { return eval(template, params, x) }
	switch x := v.(type) {
	case []any:
		var out []any
		for _, e := range x {
			if r := again(e); r != nil {
				out = append(out, r)
			}
		}
		return out
	case object:
		if len(x) == 1 {
			for name, arg := range x {
				if r, ok := intrinsic(template, params, name, arg); ok {
					return r
				}
			}
		}
		out := object{}
		for k, e := range x {
			if r := again(e); r != nil {
				out[k] = r
			}
		}
		return out
	}
	return v
}

func intrinsic(template object, params map[string]any, name string, arg any) (any, bool) {
	again := func(x any) any { return eval(template, params, x) }
	args := list(arg)
	switch name {
	case "Ref":
		return ref(params, fmt.Sprint(arg)), true
	case "Fn::GetAtt":
		if s, ok := arg.(string); ok {
			return "<" + s + ">", true
		}
		return fmt.Sprintf("<%v.%v>", args[0], args[1]), true
	case "Fn::If":
		if truth(template, params, object{"Condition": args[0]}) {
			return again(args[1]), true
		}
		return again(args[2]), true
	case "Fn::Sub":
		own := map[string]any{}
		if len(args) == 2 {
			own = fields(again(args[1]))
		}
		return substituted.ReplaceAllStringFunc(fmt.Sprint(args[0]), func(s string) string {
			n := s[2 : len(s)-1]
			if o, ok := own[n]; ok {
				return fmt.Sprint(o)
			}
			return fmt.Sprint(ref(params, n))
		}), true
	case "Fn::Join":
		var parts []string
		for _, p := range list(again(args[1])) {
			parts = append(parts, fmt.Sprint(p))
		}
		return strings.Join(parts, fmt.Sprint(args[0])), true
	case "Fn::Split":
		var out []any
		for _, p := range strings.Split(fmt.Sprint(again(args[1])), fmt.Sprint(args[0])) {
			out = append(out, p)
		}
		return out, true
	case "Fn::Select":
		n, err := strconv.Atoi(fmt.Sprint(args[0]))
		from := list(again(args[1]))
		return from[n], err == nil
	}
	return nil, false
}

func ref(params map[string]any, name string) any {
	if name == "AWS::NoValue" {
		return nil
	}
	if p, ok := params[name]; ok {
		return p
	}
	return "<" + name + ">"
}

// truth says whether a condition holds under the parameters.
func truth(template object, params map[string]any, condition any) bool {
	for name, arg := range fields(condition) {
		switch name {
		case "Condition":
			return truth(template, params, at(template, "Conditions", fmt.Sprint(arg)))
		case "Fn::Equals":
			sides := list(eval(template, params, arg))
			return len(sides) == 2 && fmt.Sprint(sides[0]) == fmt.Sprint(sides[1])
		case "Fn::Not":
			return !truth(template, params, list(arg)[0])
		case "Fn::And":
			return !slices.ContainsFunc(list(arg), func(c any) bool { return !truth(template, params, c) })
		case "Fn::Or":
			return slices.ContainsFunc(list(arg), func(c any) bool { return truth(template, params, c) })
		}
	}
	return false
}

// environment is a function's environment as a deploy under the parameters has it.
func (m *model) environment(mode, function string, params map[string]any) map[string]string {
	t := m.byMode[mode]
	env := map[string]string{}
	for k, v := range fields(eval(t, params, at(t, "Resources", function, "Properties", "Environment", "Variables"))) {
		env[k] = fmt.Sprint(v)
	}
	return env
}

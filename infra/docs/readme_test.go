// Package docs_test keeps the written word true to the code.
package docs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/local/gateway"
	"sunhwa/shared/config"
	"sunhwa/shared/job"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", path))
	require.NoError(t, err)
	return string(b)
}

// section returns what stands under a heading of a Markdown text.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n## "+heading+"\n")
	require.Truef(t, found, "no section %q", heading)
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// commands returns the lines of every shell block.
func commands(text string) []string {
	var lines []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(m[1]), "\n")...)
	}
	return lines
}

// rows returns the cells of a Markdown table's body.
func rows(text string) [][]string {
	var all [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") {
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(c))
		}
		all = append(all, cells)
	}
	return all[1:]
}

func TestDocs_makeTargetsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-zA-Z-]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	count := map[string]int{}
	for _, page := range pages(t) {
		for _, m := range regexp.MustCompile("(?m)(?:^|`|[A-Z] |\\S+=\\S+ )make ([a-z-]+)").FindAllStringSubmatch(read(t, page), -1) {
			assert.Truef(t, targets[m[1]], "%s names make %s", page, m[1])
			count[page]++
		}
	}
	assert.Greater(t, count["README.md"], 5)
	assert.Positive(t, count["CHANGELOG.md"])
	for _, line := range commands(section(t, read(t, "README.md"), "Develop")) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "make"), " ")
		assert.Truef(t, name == "" || targets[name], "%q", line)
	}
	for _, f := range []string{"Start", "Worker", "Status", "Apply", "Comments", "Sweeper"} {
		assert.Truef(t, targets["build-"+f+"Function"], "sam build needs build-%sFunction", f)
	}
}

func TestReadme_callsAreRoutes(t *testing.T) {
	api := section(t, read(t, "README.md"), "Use the API")
	var documented, routes []string
	for _, r := range rows(api) {
		documented = append(documented, strings.Trim(r[0], "`"))
	}
	for _, r := range gateway.Routes() {
		routes = append(routes, r.Key)
	}
	assert.ElementsMatch(t, routes, documented)
	for _, line := range commands(api) {
		if strings.Contains(line, "curl") {
			assert.Contains(t, line, " http://127.0.0.1:8080/")
		}
	}
}

func TestReadme_configurationIsTheCodes(t *testing.T) {
	documented := map[string]string{} // variable -> default as written
	for _, r := range rows(section(t, read(t, "README.md"), "Configuration")) {
		require.Len(t, r, 3, r)
		documented[strings.Trim(r[0], "`")] = r[1]
	}
	known := map[string]string{} // variable -> envDefault
	for _, c := range []any{
		config.Start{}, config.Worker{}, config.Status{}, config.Apply{},
		config.Comments{}, config.Sweeper{}, config.Local{},
	} {
		collect(reflect.TypeOf(c), known)
	}
	require.NotEmpty(t, known)
	for name, value := range known {
		written, ok := documented[name]
		assert.Truef(t, ok, "%s is not in README", name)
		if value != "" {
			assert.Equalf(t, "`"+value+"`", written, "default of %s", name)
		}
	}
	for name := range documented {
		assert.Containsf(t, known, name, "README names %s, which nothing reads", name)
	}
}

func TestReadme_defaultsThatDependOnTheDeadline(t *testing.T) {
	cfg, err := config.Load[config.Local](map[string]string{})
	require.NoError(t, err)
	written := map[string]string{}
	for _, r := range rows(section(t, read(t, "README.md"), "Configuration")) {
		written[r[0]] = strings.Trim(r[1], "`")
	}
	for name, want := range map[string]time.Duration{"`LLM_TIMEOUT`": cfg.LLMTimeout, "`JOB_LEASE`": cfg.JobLease} {
		got, err := time.ParseDuration(written[name])
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
	}
}

// collect gathers the env tags of a struct and of those inside it.
func collect(t reflect.Type, into map[string]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if name := f.Tag.Get("env"); name != "" {
			name, _, _ = strings.Cut(name, ",")
			into[name] = f.Tag.Get("envDefault")
		} else if f.Type.Kind() == reflect.Struct {
			collect(f.Type, into)
		}
	}
}

func TestStateMachine_namesEveryCodeAndScript(t *testing.T) {
	text := read(t, "infra/docs/state-machine.md")
	var documented, codes []string
	for _, r := range rows(section(t, text, "Who sets which failure code")) {
		documented = append(documented, strings.Trim(r[0], "`"))
	}
	for _, c := range job.Codes() {
		codes = append(codes, string(c))
	}
	assert.ElementsMatch(t, codes, documented)
	states := []string{"RUNNING", "SUCCESS", "FAILED"}
	for _, from := range states {
		for _, to := range states {
			if from == to && from == "FAILED" {
				continue // stays so by a repeat, which writes nothing
			}
			found := false
			for _, r := range rows(section(t, text, "From × to")) {
				found = found || strings.Contains(r[0], from) && strings.Contains(r[1], to)
			}
			assert.Truef(t, found, "%s to %s", from, to)
		}
	}
}

// TestDocs_linksLead: every link inside the project leads to a file, and one with
// an anchor to a heading of it.
func TestDocs_linksLead(t *testing.T) {
	notWord, count := regexp.MustCompile(`[^\p{L}\p{N}_ -]`), 0
	for _, file := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(read(t, file), -1) {
			if strings.HasPrefix(m[1], "http") {
				continue
			}
			count++
			path, anchor, anchored := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			_, err := os.Stat(filepath.Join("..", "..", target))
			require.NoErrorf(t, err, "%s links to %s", file, m[1])
			if !anchored {
				continue
			}
			var anchors []string
			for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(read(t, target), -1) {
				anchors = append(anchors, strings.ReplaceAll(notWord.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
			}
			assert.Containsf(t, anchors, anchor, "%s links to %s", file, m[1])
		}
	}
	assert.Greater(t, count, 30)
}

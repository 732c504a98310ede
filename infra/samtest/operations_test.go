package samtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func text(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", path))
	require.NoError(t, err)
	return string(b)
}

var (
	linked  = regexp.MustCompile(`\$\{OperationsUrl\}#([a-z-]+)"`)
	heading = regexp.MustCompile(`(?m)^## (.+)$`)
	deeper  = regexp.MustCompile(`(?m)^### (.+)$`)
	notWord = regexp.MustCompile(`[^a-z0-9 -]`)
)

// anchor is what a page of Markdown calls a heading in its own links.
func anchor(title string) string {
	return strings.ReplaceAll(notWord.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// TestOperations_everyAlarmHasItsSection: an alarm at night names a section that
// is there and has commands; and no section is about an alarm that is gone.
func TestOperations_everyAlarmHasItsSection(t *testing.T) {
	alarms, page := text(t, "infra/alarms.yaml"), text(t, "infra/docs/operations.md")
	want := map[string]bool{}
	for _, m := range linked.FindAllStringSubmatch(alarms, -1) {
		want[m[1]] = true
	}
	require.Equal(t, strings.Count(alarms, "Type: AWS::CloudWatch::Alarm"), len(linked.FindAllString(alarms, -1)), "every alarm links")
	require.GreaterOrEqual(t, len(want), 13)

	_, part, found := strings.Cut(page, "\n## When an alarm rings\n")
	require.True(t, found)
	part, _, _ = strings.Cut(part, "\n## ")
	titles := deeper.FindAllStringSubmatchIndex(part, -1)
	have := map[string]bool{}
	for i, at := range titles {
		name := anchor(part[at[2]:at[3]])
		end := len(part)
		if i+1 < len(titles) {
			end = titles[i+1][0]
		}
		have[name] = true
		body := part[at[1]:end]
		assert.Contains(t, body, "\n1. ", "%s says in steps what to do", name)
		assert.Contains(t, body, "```", "%s has commands", name)
	}
	assert.Equal(t, want, have)
}

// TestOperations_saysHowToLeave: what is done by hand has its section.
func TestOperations_saysHowToLeave(t *testing.T) {
	page := text(t, "infra/docs/operations.md")
	var have []string
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		have = append(have, anchor(m[1]))
	}
	assert.Subset(t, have, []string{
		"before-you-start", "when-an-alarm-rings", "roll-back", "rotate-the-models-key", "move-to-another-redis",
		"upgrade-while-jobs-run", "remove-everything",
	})
	for _, m := range regexp.MustCompile(`\]\(#([a-z-]+)\)`).FindAllStringSubmatch(page, -1) {
		all := append([]string{}, have...)
		for _, d := range deeper.FindAllStringSubmatch(page, -1) {
			all = append(all, anchor(d[1]))
		}
		assert.Contains(t, all, m[1], "a link inside the page")
	}
}

// TestOperations_namesWhatTheTemplateHas: the page's commands use outputs,
// parameters and metrics that exist.
func TestOperations_namesWhatTheTemplateHas(t *testing.T) {
	page, template := text(t, "infra/docs/operations.md"), text(t, "template.yaml")
	_, outputs, found := strings.Cut(template, "\nOutputs:\n")
	require.True(t, found)
	for _, m := range regexp.MustCompile(`\$\(output ([A-Za-z]+)\)`).FindAllStringSubmatch(page, -1) {
		assert.Contains(t, "\n"+outputs, "\n  "+m[1]+":", "an output")
	}
	_, parameters, _ := strings.Cut(template, "\nParameters:\n")
	parameters, _, _ = strings.Cut(parameters, "\nRules:\n")
	for _, line := range regexp.MustCompile(`--parameter-overrides (.*)`).FindAllStringSubmatch(page, -1) {
		for _, m := range regexp.MustCompile(`([A-Za-z]+)=`).FindAllStringSubmatch(line[1], -1) {
			assert.Contains(t, "\n"+parameters, "\n  "+m[1]+":", "a parameter")
		}
	}
}

// TestAlarms_watchMetricsThatAreWritten: a misspelt metric alarms nobody.
func TestAlarms_watchMetricsThatAreWritten(t *testing.T) {
	code := ""
	for _, f := range []string{"functions/sweeper/metrics.go", "functions/worker/metrics.go", "functions/start/main.go", "shared/obs/http.go"} {
		code += text(t, f)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`Namespace: Sunhwa\s*(?:,|\n\s+)\s*MetricName: (\w+)`).FindAllStringSubmatch(text(t, "infra/alarms.yaml"), -1) {
		names[m[1]] = true
	}
	require.GreaterOrEqual(t, len(names), 5)
	for name := range names {
		assert.Contains(t, code, `"`+name+`"`)
	}
}

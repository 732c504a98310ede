package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const operations = "infra/docs/operations.md"

// TestOperations_nothingIsDeployedUnbuilt: what is shipped is built in the same
// breath, so SAM is called within redeploy alone.
func TestOperations_nothingIsDeployedUnbuilt(t *testing.T) {
	text := read(t, operations)
	_, rest, found := strings.Cut(text, "\nredeploy() {\n")
	require.True(t, found)
	_, rest, found = strings.Cut(rest, "\n}\n")
	require.True(t, found)
	for _, line := range shell(rest) {
		assert.NotRegexp(t, `^sam `, line)
	}
	assert.NotContains(t, strings.Join(shell(text[:strings.Index(text, "\nredeploy() {\n")]), "\n"), "sam deploy")
}

// shell returns the trimmed lines of every shell block, indented ones too.
func shell(text string) []string {
	var lines []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(m[1]) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestOperations_changesParametersThatExist(t *testing.T) {
	_, parameters, found := strings.Cut(read(t, "template.yaml"), "\nParameters:\n")
	require.True(t, found)
	parameters, _, _ = strings.Cut(parameters, "\nRules:\n")
	changes := 0
	for _, line := range shell(read(t, operations)) {
		if !strings.HasPrefix(line, "change ") && !strings.HasPrefix(line, "redeploy ") {
			continue
		}
		changes++
		for _, m := range regexp.MustCompile(` ([A-Za-z]+)=`).FindAllStringSubmatch(line, -1) {
			assert.Containsf(t, "\n"+parameters, "\n  "+m[1]+":", "%s", line)
		}
	}
	assert.GreaterOrEqual(t, changes, 8)
}

// TestOperations_functionsWork runs the page's own functions in bash, with an aws
// and a sam that write down what they are asked.
func TestOperations_functionsWork(t *testing.T) {
	bash, err := exec.LookPath("bash")
	require.NoError(t, err, "bash is not installed; run: make tools")
	setup := strings.Join(commands(section(t, read(t, operations), "Before you start")), "\n")
	setup, _, found := strings.Cut(setup, "\naws cloudformation detect-stack-drift")
	require.True(t, found)
	setup += "\n"

	const aws = `#!/bin/sh
case "$*" in
*"ParameterKey=='Architecture'"*) echo x86_64 ;;
*"Parameters[].[ParameterKey]"*) printf 'Architecture\nLlmApiKey\nWorkerMemoryMb\n' ;;
*) for a; do printf '<%s>' "$a" >>"$LOG"; done; echo >>"$LOG" ;;
esac
`
	const sam = `#!/bin/sh
for a; do printf '<%s>' "$a" >>"$LOG"; done
echo >>"$LOG"
[ "$1" != "$FAIL" ]
`
	for name, c := range map[string]struct{ call, fail, want string }{
		"change": {"change WorkerMemoryMb=1024", "", "<cloudformation><update-stack><--stack-name><sunhwa><--use-previous-template>" +
			"<--capabilities><CAPABILITY_IAM><CAPABILITY_AUTO_EXPAND><--parameters><ParameterKey=WorkerMemoryMb,ParameterValue=1024>" +
			"<ParameterKey=Architecture,UsePreviousValue=true><ParameterKey=LlmApiKey,UsePreviousValue=true>\n" +
			"<cloudformation><wait><stack-update-complete><--stack-name><sunhwa>\n"},
		"to empty": {"change LlmApiKey=", "", "<cloudformation><update-stack><--stack-name><sunhwa><--use-previous-template>" +
			"<--capabilities><CAPABILITY_IAM><CAPABILITY_AUTO_EXPAND><--parameters><ParameterKey=LlmApiKey,ParameterValue=>" +
			"<ParameterKey=Architecture,UsePreviousValue=true><ParameterKey=WorkerMemoryMb,UsePreviousValue=true>\n" +
			"<cloudformation><wait><stack-update-complete><--stack-name><sunhwa>\n"},
		"redeploy": {"redeploy", "", "<build><--parameter-overrides><Architecture=x86_64>\n" +
			"<deploy><--stack-name><sunhwa><--parameter-overrides><Architecture=x86_64>\n"},
		"redeploy with": {"redeploy WorkerMemoryMb=1024 MaxComments=5", "", "<build><--parameter-overrides><Architecture=x86_64>\n" +
			"<deploy><--stack-name><sunhwa><--parameter-overrides><Architecture=x86_64><WorkerMemoryMb=1024><MaxComments=5>\n"},
		"a build that fails": {"! redeploy", "build", "<build><--parameter-overrides><Architecture=x86_64>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for program, text := range map[string]string{"aws": aws, "sam": sam} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, program), []byte(text), 0o755))
			}
			stale := filepath.Join(dir, ".aws-sam")
			require.NoError(t, os.Mkdir(stale, 0o755))
			cmd := exec.Command(bash, "-euo", "pipefail", "-c", setup+c.call)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "LOG=" + filepath.Join(dir, "log"), "FAIL=" + c.fail}
			out, err := cmd.CombinedOutput()
			require.NoErrorf(t, err, "%s", out)
			asked, err := os.ReadFile(filepath.Join(dir, "log"))
			require.NoError(t, err)
			assert.Equal(t, c.want, string(asked))
			if strings.Contains(c.call, "redeploy") {
				assert.NoDirExists(t, stale, "an older build is not shipped")
			}
		})
	}
}

//go:build sam

package samtest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOperations_commandsExist: every AWS command of the page is one, with its
// options, and every block is shell.
func TestOperations_commandsExist(t *testing.T) {
	root := rootFolder(t)
	check := func(page string) string {
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, ".tools/sam/bin/python"), filepath.Join(root, "infra/samtest/commands.py"), page).CombinedOutput()
		require.NoErrorf(t, err, "%s", out)
		return string(out)
	}
	assert.Empty(t, check(filepath.Join(root, "infra/docs/operations.md")))

	wrong := filepath.Join(t.TempDir(), "wrong.md")
	write(t, wrong, "aws sqs drain-queue --queue-url x\naws sqs purge-queue --queue x\naws sqz purge-queue\n"+
		"aws cloudformation wait stack-is-happy\naws cloudformation wait stack-exists --stack x\n")
	assert.Len(t, strings.Split(strings.TrimSpace(check(wrong)), "\n"), 5)

	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text(t, "infra/docs/operations.md"), -1) {
		cmd := exec.CommandContext(t.Context(), "bash", "-n")
		cmd.Stdin = strings.NewReader(m[1])
		out, err := cmd.CombinedOutput()
		assert.NoErrorf(t, err, "%s\n%s", m[1], out)
	}
}

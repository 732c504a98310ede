package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sunhwa/infra/race/explore"
	"sunhwa/shared/rewrite/prompt"
)

// pages lists all that is written for readers, by its path from the root.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CHANGELOG.md"}
	require.NoError(t, filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) == ".md" {
			all = append(all, filepath.ToSlash(filepath.Join("infra/docs", path)))
		}
		return err
	}))
	require.Greater(t, len(all), 10)
	return all
}

// written is a test as it stands in the code.
type written struct{ folder, body string }

// tests finds every test function of the project by its name.
func tests(t *testing.T) map[string][]written {
	t.Helper()
	root, all := filepath.Join("..", ".."), map[string][]written{}
	for _, top := range []string{"shared", "infra", "functions"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, top), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
			require.NoError(t, err)
			folder, err := filepath.Rel(root, filepath.Dir(path))
			require.NoError(t, err)
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
					body := string(source[f.Body.Pos()-file.FileStart : f.Body.End()-file.FileStart])
					all[f.Name.Name] = append(all[f.Name.Name], written{filepath.ToSlash(folder), body})
				}
			}
			return nil
		}))
	}
	return all
}

var testName = regexp.MustCompile("`(Test[A-Z]\\w*(?:/\\w+)?)`")

// find returns the test that a page names, as Test or Test/case.
func find(t *testing.T, all map[string][]written, page, name string) written {
	t.Helper()
	function, part, _ := strings.Cut(name, "/")
	require.Lenf(t, all[function], 1, "%s names %s: one test of that name", page, name)
	found := all[function][0]
	if part != "" {
		require.Containsf(t, found.body, `"`+part+`"`, "%s names %s: a case of that name", page, name)
	}
	return found
}

func TestDocs_namedTestsExist(t *testing.T) {
	all, count := tests(t), map[string]int{}
	for _, page := range pages(t) {
		for _, m := range testName.FindAllStringSubmatch(read(t, page), -1) {
			find(t, all, page, m[1])
			count[page]++
		}
	}
	assert.GreaterOrEqual(t, count["README.md"], 20)
	assert.GreaterOrEqual(t, count["infra/docs/proof.md"], 15)
}

// runsOn says, for each way in which a table may say what its tests run on,
// whether that is true of a test.
var runsOn = []struct {
	words string
	holds func(written) bool
}{
	{"every real Redis", func(w written) bool { return strings.Contains(w.body, "testkit.Engines(t)") }},
	{"every Redis", func(w written) bool {
		return w.folder == "shared/jobstore" && strings.Contains(w.body, "onEach(t")
	}},
	{"the embedded Redis", func(w written) bool {
		return w.folder == "shared/jobstore" && strings.Contains(w.body, "onMini(t") && !strings.Contains(w.body, "onEach(") ||
			w.folder == "shared/handler" && regexp.MustCompile(`newWorld\(t|newWorkerRig\(t`).MatchString(w.body)
	}},
	{"every stand-in for DynamoDB", func(w written) bool {
		return w.folder == "shared/comments" && strings.Contains(w.body, "testkit.DynamoNames()")
	}},
	{"the local stack", func(w written) bool {
		return w.folder == "infra/local" && strings.Contains(w.body, "up(t")
	}},
	{"no server", func(w written) bool {
		return !regexp.MustCompile(`onEach|onReal|onMini|testkit|miniredis`).MatchString(w.body)
	}},
}

// TestDocs_testsRunOnWhatIsSaid holds for every table whose last column is headed
// "run on".
func TestDocs_testsRunOnWhatIsSaid(t *testing.T) {
	all, checked := tests(t), 0
	for _, page := range pages(t) {
		within := false
		for line := range strings.Lines(read(t, page)) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "|") || strings.HasSuffix(line, "| run on |") {
				within = strings.HasPrefix(line, "|")
				continue
			}
			if !within || strings.HasPrefix(line, "| ---") || !testName.MatchString(line) {
				continue
			}
			cells := strings.Split(strings.Trim(line, "|"), "|")
			place := strings.TrimSpace(cells[len(cells)-1])
			known := false
			for _, r := range runsOn {
				if !strings.HasPrefix(place, r.words) {
					continue
				}
				known = true
				for _, m := range testName.FindAllStringSubmatch(line, -1) {
					assert.Truef(t, r.holds(find(t, all, page, m[1])), "%s says that %s runs on %s", page, m[1], r.words)
					checked++
				}
			}
			assert.Truef(t, known, "%s: %q", page, place)
		}
	}
	assert.GreaterOrEqual(t, checked, 35)
}

func TestProof_namesTheInvariants(t *testing.T) {
	var documented, names []string
	for _, r := range rows(section(t, read(t, "infra/docs/proof.md"), "The invariants")) {
		documented = append(documented, r[0])
	}
	for _, i := range explore.Invariants() {
		names = append(names, i.Name)
	}
	assert.Equal(t, append(names, "the end"), documented)
}

func TestProof_namesTheScenarios(t *testing.T) {
	var scenarios [][]string
	documented := rows(section(t, read(t, "infra/docs/proof.md"), "The scenarios"))
	for _, s := range explore.Scenarios() {
		scenarios = append(scenarios, []string{s.Name, s.Says})
		assert.LessOrEqual(t, len(s.Ticks), 3, "the page says: none to three steps of the clock")
	}
	assert.Equal(t, scenarios, documented)
}

// TestProof_testsAgainstEveryFault: each of the ten has a line.
func TestProof_testsAgainstEveryFault(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows(section(t, read(t, "infra/docs/proof.md"), "The usual faults, and the tests against them")) {
		require.Len(t, r, 4)
		assert.Regexp(t, testName, r[2])
		seen[r[0]] = true
	}
	for letter := 'a'; letter <= 'j'; letter++ {
		assert.True(t, seen[string(letter)], string(letter))
	}
}

// TestChangelog_saysWhatJobsCarry: the line that an upgrade is decided by.
func TestChangelog_saysWhatJobsCarry(t *testing.T) {
	schema := regexp.MustCompile(`(?m)^const schema = "(\w+)"`).FindStringSubmatch(read(t, "shared/jobstore/store.go"))
	require.NotNil(t, schema)
	newest := regexp.MustCompile(`(?s)\n## \[[^\]]+\][^\n]*\n\n([^\n]*)\n`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	require.NotNil(t, newest)
	assert.Equal(t, "Jobs: schema "+schema[1]+", prompt "+prompt.Current+".", newest[1])
}

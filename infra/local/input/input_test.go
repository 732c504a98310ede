package input_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/unicode"

	"sunhwa/infra/local/input"
	"sunhwa/shared/job"
)

var want = []job.Comment{
	{ID: "c1", Text: "강의가 최악, \"돈\" 아까움\n둘째 줄"},
	{ID: "c2", Text: "Useless report."},
}

const excel = "Text,Date,ID\r\n\"강의가 최악, \"\"돈\"\" 아까움\r\n둘째 줄\",2024-01-02,c1\r\nUseless report.,,c2\r\n,,\r\n"

func encoded(t *testing.T, e encoding.Encoding, s string) []byte {
	t.Helper()
	b, err := e.NewEncoder().Bytes([]byte(s))
	require.NoError(t, err)
	return b
}

func TestParse_csvAsExcelWritesIt(t *testing.T) {
	tests := map[string][]byte{
		"UTF-8":            []byte(excel),
		"UTF-8 with BOM":   []byte("\ufeff" + excel),
		"UTF-16 LE":        encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), excel),
		"UTF-16 BE":        encoded(t, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), excel),
		"UTF-16 LE no BOM": encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), excel),
		"UTF-16 BE no BOM": encoded(t, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), excel),
		"CP949":            encoded(t, korean.EUCKR, excel),
		"semicolons":       []byte(strings.ReplaceAll(strings.ReplaceAll(excel, "최악,", "최악\x00"), ",", ";")),
	}
	tests["semicolons"] = []byte(strings.ReplaceAll(string(tests["semicolons"]), "\x00", ","))
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := input.Parse("x.CSV", data)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
	got, err := input.Parse("x.tsv", []byte("\ufeffid\ttext\nc1\ta, b\n"))
	require.NoError(t, err)
	assert.Equal(t, []job.Comment{{ID: "c1", Text: "a, b"}}, got)
}

// 뷁 stands in CP949 but not in the older EUC-KR.
func TestParse_cp949Extension(t *testing.T) {
	data := append([]byte("id,text\n1,"), 0x94, 0xEE, '\n')
	got, err := input.Parse("x.csv", data)
	require.NoError(t, err)
	assert.Equal(t, "뷁", got[0].Text)
}

func TestParse_json(t *testing.T) {
	array := `[{"id":"c1","text":"강의가 최악, \"돈\" 아까움\n둘째 줄","rating":1},{"text":"Useless report.","id":"c2"}]`
	for name, data := range map[string]string{
		"a.json":   array,
		"bom.json": "\ufeff" + array,
		"o.json":   `{"fresh":true,"comments":` + array + "}\n",
		"l.jsonl":  `{"id":"c1","text":"강의가 최악, \"돈\" 아까움\n둘째 줄"}` + "\r\n\r\n" + `{"id":"c2","text":"Useless report."}`,
	} {
		got, err := input.Parse(name, []byte(data))
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
	}
	got, err := input.Parse("n.json", []byte(`[{"id":7,"text":"x"}]`))
	require.NoError(t, err)
	assert.Equal(t, "7", got[0].ID)
}

func TestParse_badRowsAreNamed(t *testing.T) {
	tests := []struct {
		name, file, data string
		rows             []string
	}{
		{"csv", "x.csv", "id,text\na,1\n\n,2\nb,\"x\ny\"\na,3\nc\nd, \nno way,x\n..,x\n", []string{
			"row 4: the id is missing",
			`row 6 (line 7): the id "a" stands in row 2 already`,
			"row 7 (line 8): it has 1 column; the header has 2",
			"row 8 (line 9): the text is missing or blank",
			"row 9 (line 10): the id may have letters, digits and . _ ~ - only, at most 128",
			"row 10 (line 11): the id may have letters, digits and . _ ~ - only, at most 128",
		}},
		{"csv quote", "x.csv", "id,text\na,say \"x\"\nb,fine\n", []string{`row 2: a text with a " in it must stand in quotes, its own doubled`}},
		{"csv open quote", "x.csv", "id,text\na,fine\nb,\"open\n", []string{`row 3: a " inside a quoted text must be doubled, or the closing one is missing`}},
		{"json", "x.json", `[{"id":"a","text":"t"},{"id":"a","text":"t"},{"id":"b"},{"text":"t"},{"id":"c","text":1},3,{"id":{},"text":"t"},{"id":null,"text":"t"}]`, []string{
			`comment 2: the id "a" stands in comment 1 already`,
			"comment 3: the text is missing or blank",
			"comment 4: the id is missing",
			"comment 5: text is a number, not a string",
			`comment 6: it is no object {"id":…,"text":…}`,
			"comment 7: the id is neither a string nor a number",
			"comment 8: the id is missing",
		}},
		{"jsonl", "x.jsonl", "{\"id\":\"a\",\"text\":\"t\"}\n\n{\"id\":\"b\"\n", []string{"line 3: it is no JSON object: unexpected end of JSON input"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := input.Parse(tt.file, []byte(tt.data))
			assert.Nil(t, got)
			var bad *input.Error
			require.ErrorAs(t, err, &bad)
			var rows []string
			for _, r := range bad.Rows {
				rows = append(rows, r.Where+": "+r.Reason)
			}
			assert.Equal(t, tt.rows, rows)
			assert.Contains(t, err.Error(), tt.file)
			assert.Contains(t, err.Error(), tt.rows[0])
		})
	}
}

// A separator that should have been quoted must not cut a text short.
func TestParse_csvMoreThanTheHeader(t *testing.T) {
	for _, tt := range []struct{ file, data, says string }{
		{"x.csv", "id,text\nc1,Awful, really the worst\n", "row 2: it has 3 columns; the header has 2; a text with a comma must stand in quotes"},
		{"x.csv", "text,id\nAwful, really,c1\n", "row 2: it has 3 columns; the header has 2; a text with a comma"},
		{"x.csv", "id,text,,\nc1,Awful, really the worst,\n", "row 2: it has 3 columns; the header has 2; a text with a comma"},
		{"x.csv", "id;text\nc1;fine, really\nc2;a; b; c\n", "row 3: it has 4 columns; the header has 2; a text with a semicolon"},
		{"x.tsv", "id\ttext\nc1\ta\tb\n", "a text with a tab must stand"},
		{"x.csv", "sep=|\nid|text\nc1|a|b\n", "row 2 (line 3): it has 3 columns; the header has 2; a text with a '|' must stand"},
	} {
		got, err := input.Parse(tt.file, []byte(tt.data))
		assert.Nil(t, got)
		require.ErrorContains(t, err, tt.says, tt.data)
		assert.ErrorContains(t, err, ": 1 comment cannot be read")
		assert.NotContains(t, err.Error(), "really", "no text in an error")
	}
	got, err := input.Parse("x.csv", []byte("id,text,\nc1,fine,,, ,\n"))
	require.NoError(t, err, "empty fields to the right are none")
	assert.Equal(t, []job.Comment{{ID: "c1", Text: "fine"}}, got)
}

func TestParse_csvFirstLineAndLineEnds(t *testing.T) {
	lines := "ID;Text\nc1;\"강의가 최악, \"\"돈\"\" 아까움\n둘째 줄\"\nc2;Useless report.\n"
	for name, data := range map[string]string{
		"sep":              "sep=;\n" + lines,
		"SEP, CRLF":        "\ufeffSEP=;\r\n" + strings.ReplaceAll(lines, "\n", "\r\n"),
		"CR":               strings.ReplaceAll(lines, "\n", "\r"),
		"sep, CR":          "sep=;\r" + strings.ReplaceAll(lines, "\n", "\r"),
		"CR, LF in a text": strings.ReplaceAll(strings.ReplaceAll(lines, "\n", "\r"), "움\r", "움\n"),
		"CR at no end":     strings.TrimSuffix(strings.ReplaceAll(lines, "\n", "\r"), "\r"),
	} {
		got, err := input.Parse("x.csv", []byte(data))
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
	}
	// The separator that is named, not the one that is frequent.
	got, err := input.Parse("x.csv", []byte("sep=|\nid|text|a,b,c\nc1|x, y|\n"))
	require.NoError(t, err)
	assert.Equal(t, []job.Comment{{ID: "c1", Text: "x, y"}}, got)

	_, err = input.Parse("x.csv", []byte("id,text\r\rc1,\r"))
	require.ErrorContains(t, err, "row 3: the text is missing or blank")
}

func TestParse_manyBadRows(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,text\n")
	for i := range 30 {
		fmt.Fprintf(&b, "%d,\n", i)
	}
	_, err := input.Parse("x.csv", []byte(b.String()))
	var bad *input.Error
	require.ErrorAs(t, err, &bad)
	assert.Len(t, bad.Rows, 20)
	assert.Equal(t, 10, bad.More)
	assert.Contains(t, err.Error(), "x.csv: 30 comments cannot be read")
}

func TestParse_badFiles(t *testing.T) {
	tests := []struct{ file, data, says string }{
		{"x.json", "", "empty"},
		{"x.json", "\ufeff \n", "empty"},
		{"x.json", "[{\"id\":\"a\",\n\"text\":}]", "line 2 is no JSON"},
		{"x.json", `[{"id":"a"`, "ends too early"},
		{"x.json", `{"id":"a","text":"b"}`, `no array "comments"`},
		{"x.json", `"a"`, "neither an array"},
		{"x.json", "{\"id\":\"a\"}\n{\"id\":\"b\"}", ".jsonl"},
		{"x.json", "[]", "no comment"},
		{"x.csv", "name,comment\n1,2\n", "columns id and text"},
		{"x.csv", "id,text\n", "no comment"},
		{"x.csv", "id,text,Text\n1,a,b\n", "the column text twice"},
		{"x.csv", "id,text, ID\n1,a,b\n", "the column id twice"},
		{"x.csv", "sep=\nid,text\n1,a\n", "must name one separator"},
		{"x.csv", "sep=ab\nid,text\n1,a\n", "must name one separator"},
		{"x.csv", "sep=\"\nid,text\n1,a\n", "must name one separator"},
		{"x.csv", "id,text\n1,\x81\xff\n", "save the file as UTF-8"},
		{"x.xlsx", "PK", "name it .json, .jsonl or .csv"},
	}
	for _, tt := range tests {
		got, err := input.Parse(tt.file, []byte(tt.data))
		assert.Nil(t, got)
		require.ErrorContains(t, err, tt.says, tt.data)
		assert.ErrorContains(t, err, tt.file)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	_, err := input.Read(filepath.Join(dir, "none.csv"))
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Equal(t, 1, strings.Count(err.Error(), "none.csv"))
	_, err = input.Read(dir)
	require.Error(t, err)
	name := filepath.Join(dir, "a.csv")
	require.NoError(t, os.WriteFile(name, []byte(excel), 0o600))
	got, err := input.Read(name)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

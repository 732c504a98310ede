package llm

import (
	"hash/fnv"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Soften returns text in a politer wording, by the tables of rules.go and nothing
// else. The same text always gives the same answer. It never returns a blank text
// for one that is not blank.
func Soften(text string) string {
	s := strings.TrimSpace(text)
	ko, en := scriptShares(s)
	s, hits := apply(signs, s)
	s, _ = apply(loudness, s)
	if en {
		s = quietShouting(s)
		var n int
		s, n = apply(english, s)
		hits += n
		s, _ = apply(englishArticles, s)
	}
	if ko {
		var n int
		s, n = apply(korean, s)
		hits += n
		s = politeEndings(s)
	}
	s = tidy(s)
	if en {
		s = capitals(text, s)
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return nothingLeft(text, s)
	}
	if !ko && !en { // the tables know two languages; another one is not framed in them
		return s
	}
	if hits == 0 && praise.MatchString(text) {
		return strings.TrimSpace(text)
	}
	return frame(text, s, ko && mostlyHangul(s))
}

func apply(rules []rule, s string) (string, int) {
	hits, lower := 0, strings.ToLower(s)
	for _, r := range rules {
		if !r.concerns(lower) {
			continue
		}
		if out := r.pattern.ReplaceAllString(s, r.with); out != s {
			s, hits, lower = out, hits+1, strings.ToLower(out)
		}
	}
	return s, hits
}

// nothingLeft answers a text that was all signs or swearing.
func nothingLeft(text, left string) string {
	ko, en := scriptShares(text)
	switch {
	case ko:
		return "많이 아쉬웠습니다."
	case en:
		return "I was disappointed with this."
	case strings.ContainsFunc(left, unicode.IsGraphic):
		return left
	}
	return "😟"
}

func scriptShares(s string) (ko, en bool) {
	for _, r := range s {
		ko = ko || unicode.Is(unicode.Hangul, r)
		en = en || unicode.Is(unicode.Latin, r)
	}
	return ko, en
}

// mostlyHangul weighs a syllable as two Latin letters, which is about what it
// says.
func mostlyHangul(s string) bool {
	n := 0
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Hangul, r):
			n += 2
		case unicode.Is(unicode.Latin, r):
			n--
		}
	}
	return n > 0
}

// frame puts the opening and the closing sentence around s.
func frame(text, s string, ko bool) string {
	openings, closings := englishOpenings, englishClosings
	if ko {
		openings, closings = koreanOpenings, koreanClosings
	}
	h := textHash(text)
	opening := openings[h%uint64(len(openings))]
	if ko && (strings.HasPrefix(s, "솔직") || strings.ContainsRune("\"'“‘「『([{`", firstRune(s))) {
		opening = ""
	}
	if opening != "" && !ko {
		// Only in front of a word that surely is no name and begins a clause.
		if word := clauseWords.FindString(s); word != "" {
			s = strings.ToLower(word[:1]) + s[1:]
		} else {
			opening = ""
		}
	}
	closing := closings[h/7%uint64(len(closings))]
	if strings.Contains(s, closing) || strings.Contains(s, "환불해 주시면") || strings.Contains(s, "주시면 좋겠습니다") {
		closing = ""
	}
	s = opening + s
	if closing == "" {
		return s
	}
	if last, _ := utf8.DecodeLastRuneInString(s); unicode.IsLetter(last) || unicode.IsDigit(last) {
		s += "."
	}
	return s + " " + closing
}

func textHash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return h.Sum64()
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// clauseWords begin a clause; they lose their capital behind an opening.
var clauseWords = regexp.MustCompile(`^(?i:The|This|That|These|Those|It|There|What|Why|Who|How|When|Did|Do|Does|Is|Are|Was|Were|Your|You|He|She|They|We|My|Our|In|On|At|Nothing|Nobody|Everything)\b`)

var (
	shouted    = regexp.MustCompile(`\b[A-Z]{4,}\b`)
	sentence   = regexp.MustCompile(`(^|[.?]\s+)([a-z])`)
	spaces     = regexp.MustCompile(`[ \t]{2,}`)
	spaceStop  = regexp.MustCompile(` +([.,?])`)
	doubleStop = regexp.MustCompile(`([,.?])(?:\s?[,.])+(\s|$)`)
	ellipsis   = regexp.MustCompile(`\.{3,}|…`)
	leading    = regexp.MustCompile(`^[\s,.;:]+`)
)

// quietShouting lowers words in capitals when most of a text is shouted; otherwise
// capitals are names and abbreviations.
func quietShouting(s string) string {
	upper, lower := 0, 0
	for _, r := range s {
		switch {
		case unicode.IsUpper(r):
			upper++
		case unicode.IsLower(r):
			lower++
		}
	}
	if upper > 8 && upper > 3*lower {
		return strings.ToLower(s)
	}
	return shouted.ReplaceAllStringFunc(s, func(w string) string {
		if emphatic[w] {
			return strings.ToLower(w)
		}
		return w
	})
}

// emphatic words are shouted, not abbreviated.
var emphatic = map[string]bool{
	"NEVER": true, "EVER": true, "WORST": true, "TERRIBLE": true, "NOTHING": true, "ALWAYS": true, "ABSOLUTE": true,
	"GARBAGE": true, "TRASH": true, "HORRIBLE": true, "AWFUL": true, "STOP": true, "EVERY": true, "SINGLE": true,
	"VERY": true, "REALLY": true, "ZERO": true, "TOTAL": true, "COMPLETE": true, "USELESS": true, "WASTE": true, "TIME": true,
}

// tidy mends the spaces and stops that replacements leave behind. An ellipsis is
// kept.
func tidy(s string) string {
	const mark = "\x00"
	s = ellipsis.ReplaceAllString(s, mark)
	s = spaces.ReplaceAllString(s, " ")
	s = spaceStop.ReplaceAllString(s, "$1")
	s = doubleStop.ReplaceAllString(s, "$1$2")
	s = leading.ReplaceAllString(s, "")
	return strings.TrimSpace(strings.ReplaceAll(s, mark, "..."))
}

// capitals gives sentences their capital again where a replacement took it, for
// writers who use capitals at all.
func capitals(text, s string) string {
	if !strings.ContainsFunc(text, unicode.IsUpper) {
		return s
	}
	s = sentence.ReplaceAllStringFunc(s, strings.ToUpper)
	return strings.ReplaceAll(s, " i ", " I ")
}

package llm

import (
	"regexp"
	"strings"
)

// A syllable of Hangul is 0xAC00 + (initial*21 + vowel)*28 + final
// (https://www.unicode.org/versions/latest/core-spec/chapter-3/#G24646).
const (
	firstSyllable = 0xAC00
	lastSyllable  = 0xD7A3
	finals        = 28

	finalNone = 0
	finalN    = 4
	finalL    = 8
	finalM    = 16
	finalB    = 17
)

// final returns the index of a syllable's final consonant, and false when r is no
// syllable.
func final(r rune) (int, bool) {
	if r < firstSyllable || r > lastSyllable {
		return 0, false
	}
	return int(r-firstSyllable) % finals, true
}

// withFinal returns the syllable r with another final consonant.
func withFinal(r rune, f int) rune {
	return r - (r-firstSyllable)%finals + rune(f)
}

// sentenceEnd is what may follow the last syllable of a Korean sentence. A closing
// quotation mark is not among them: quoted words stay as they were said.
const sentenceEnd = `(\s*[.!?~…]|\s*$|\s*\n|\s+[\x{1F300}-\x{1FAFF}])`

var (
	plainDa   = regexp.MustCompile(`(^|[\s,가-힣])([가-힣])다` + sentenceEnd)
	nounEnd   = regexp.MustCompile(`([가-힣]*)(함|됨|옴|느림|비쌈|나쁨|모름|큼|떨어짐|깨짐|터짐|심함)` + sentenceEnd)
	eum       = regexp.MustCompile(`([었았했됐였겠있없좋많적싫])(?:음|슴)` + sentenceEnd)
	copulaIm  = regexp.MustCompile(`(거|것|뿐|수준|정도|별로|사람|제품|강의|수업)임` + sentenceEnd)
	banmal    = regexp.MustCompile(`(없어|있어|했어|됐어|였어|었어|았어|겠어|같아|싫어|많아|몰라|더라고|거든|잖아)` + sentenceEnd)
	neEnd     = regexp.MustCompile(`([가-힣])네` + sentenceEnd)
	deora     = regexp.MustCompile(`더라` + sentenceEnd)
	nya       = regexp.MustCompile(`(거|것|이|뭐|하|되|있|없|었|았|했|였|겠|가|오|같으|좋으|나쁘)냐\s*\??` + `(\s|$)`)
	haera     = regexp.MustCompile(`해라` + sentenceEnd)
	jwo       = regexp.MustCompile(`줘` + sentenceEnd)
	notVerbs  = regexp.MustCompile(`(?:포|보관|결|우편|사물|명)함$`)
	formalDa  = "니다"
	nyaAnswer = map[string]string{"거": "건가요?", "것": "것인가요?", "이": "인가요?", "뭐": "무엇인가요?"}
)

// politeEndings turns the plain and clipped endings of sentences into polite ones
// (했다 → 했습니다, 안 됨 → 안 됩니다, 없어 → 없어요).
func politeEndings(s string) string {
	s = copulaIm.ReplaceAllString(s, "${1}입니다$2")
	s = eum.ReplaceAllString(s, "${1}습니다$2")
	s = replaceGroups(nounEnd, s, func(g []string) string {
		if notVerbs.MatchString(g[1] + g[2]) {
			return g[0]
		}
		word := []rune(g[2])
		last := len(word) - 1
		return g[1] + string(word[:last]) + string(withFinal(word[last], finalB)) + formalDa + g[3]
	})
	s = replaceGroups(plainDa, s, func(g []string) string {
		return g[1] + formal(firstRune(g[1]), firstRune(g[2])) + g[3]
	})
	s = replaceGroups(nya, s, func(g []string) string {
		if a, ok := nyaAnswer[g[1]]; ok {
			return a + g[2]
		}
		return g[1] + "나요?" + g[2]
	})
	s = banmal.ReplaceAllString(s, "${1}요$2")
	s = neEnd.ReplaceAllString(s, "${1}네요$2")
	s = deora.ReplaceAllString(s, "더라고요$1")
	s = haera.ReplaceAllString(s, "해 주시면 좋겠습니다$1")
	return jwo.ReplaceAllString(s, "주세요$1")
}

// formal returns the formal ending for the syllable before a plain 다, the
// syllable itself included: 했 → 했습니다, 한 → 합니다, 크 → 큽니다, 길 → 깁니다, 먹는 →
// 먹습니다. before is the syllable in front of it.
func formal(before, r rune) string {
	f, _ := final(r)
	switch {
	case r == '니': // 습니다, 합니다: formal already
		return "니다"
	case r == '는':
		if bf, _ := final(before); bf != finalNone {
			return "습니다"
		}
		return "는다"
	case f == finalNone, f == finalN, f == finalL:
		return string(withFinal(r, finalB)) + formalDa
	}
	return string(r) + "습니다"
}

func replaceGroups(p *regexp.Regexp, s string, f func(groups []string) string) string {
	var b strings.Builder
	at := 0
	for _, m := range p.FindAllStringSubmatchIndex(s, -1) {
		groups := make([]string, len(m)/2)
		for i := range groups {
			if m[2*i] >= 0 {
				groups[i] = s[m[2*i]:m[2*i+1]]
			}
		}
		b.WriteString(s[at:m[0]])
		b.WriteString(f(groups))
		at = m[1]
	}
	b.WriteString(s[at:])
	return b.String()
}

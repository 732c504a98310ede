package rewrite

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Validate returns why answer is no polite version of input, as a short code, or
// "" when nothing speaks against it. It cannot judge meaning; it catches what
// models do wrong most: empty or cut answers, babble, titles and apologies around
// the text, added quotation marks, another language. It is bounded so that an
// honest rewrite passes: whatever the input itself does, the answer may do.
func Validate(input, answer string) string {
	input, answer = strings.TrimSpace(input), strings.TrimSpace(answer)
	switch {
	case blank(answer):
		return "answer_empty"
	case garbled(input, answer):
		return "answer_garbled"
	case tooShort(input, answer):
		return "answer_too_short"
	case tooLong(input, answer):
		return "answer_too_long"
	case startsLike(preambles, input, answer):
		return "answer_preamble"
	case startsLike(refusals, input, answer):
		return "answer_refusal"
	case trailingNote.MatchString(answer) && !trailingNote.MatchString(input):
		return "answer_note"
	case quoted(answer) && !quoted(input):
		return "answer_quoted"
	case !sameLanguage(input, answer):
		return "answer_language"
	}
	return ""
}

// blank reports whether nothing in s can be seen.
func blank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r)
	})
}

// garbled reports control characters or replacement characters that the input does
// not have.
func garbled(input, answer string) bool {
	bad := func(r rune) bool {
		return r == utf8.RuneError || (unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t')
	}
	return strings.ContainsFunc(answer, bad) && !strings.ContainsFunc(input, bad)
}

// The length bounds, in characters. Softening a one-word insult makes a sentence
// of it, hence the slack; a rant may shrink a good deal, and a short text to
// anything.
const (
	longFactor  = 3
	longSlack   = 200
	shortFactor = 10
	shortFrom   = 80
)

func tooLong(input, answer string) bool {
	return utf8.RuneCountInString(answer) > longFactor*utf8.RuneCountInString(input)+longSlack
}

func tooShort(input, answer string) bool {
	n := substance(input)
	return n >= shortFrom && utf8.RuneCountInString(answer)*shortFactor < n
}

// substance counts characters, a run of the same one (ㅋㅋㅋㅋ, !!!!) as three at
// most: shouting may go without a trace.
func substance(s string) int {
	n, run, last := 0, 0, rune(-1)
	for _, r := range s {
		if r != last {
			run, last = 0, r
		}
		if run++; run <= 3 {
			n++
		}
	}
	return n
}

// lead is what may stand before a title or phrase: markup, quotation marks, emoji.
const lead = `(?is)^[\s\pP\pS]*`

// preambles are titles and announcements in front of the text. Each needs words
// that speak of rewriting, so that a comment that begins "Here are the problems:"
// passes.
var preambles = compile(
	// "Sure! Here's a rewritten version:", "The following is a more polite way to say it:"
	lead+`(?:(?:sure|certainly|of course|absolutely|okay|ok|great|no problem)(?: thing)?[,.!\s]+)?`+
		`(?:here(?:['’]s| is| are)|below is|the following is)\s[^\n:]{0,80}?`+
		`(?:(?:rewrit|rewrote|revis|reword|rephras|paraphras|polite|courteous|respectful|softened|softer|gentler|kinder|toned)[^\n:]{0,60}?`+
		`(?:version|comment|text|way|message|response|sentence|statement|paragraph)|rewrite\b|rewording)[^\n:]{0,60}:`,
	// "Rewritten comment:", "Polite version:"
	lead+`(?:the )?(?:rewritten|revised|reworded|rephrased|polite|more polite|politer|softened)`+
		`(?: (?:and )?(?:polite|rewritten|version|comment|text|review|feedback|response|message))*[\s*_]*:`,
	// "Certainly, I'd be happy to rewrite this."
	lead+`(?:sure|certainly|of course|absolutely)[,.!\s]+(?:i['’]d|i would|i['’]ll|i can|i will)\s+(?:be (?:happy|glad) to|gladly|help|rewrite|rephrase)`,
	// "다음은 정중하게 바꾼 문장입니다:", "네, 아래는 순화한 표현입니다.\n"
	lead+`(?:(?:네|예|물론입니다|물론이죠|물론이에요|알겠습니다|좋습니다)[,.!~\s]+)?`+
		`(?:다음은|아래는|이것은|여기)\s[^\n:：]{0,60}?(?:정중|공손|순화|부드럽|부드러운|완곡|다듬|고쳐|고친|바꾼|바꿔|다시 쓴|다시 작성|재작성|수정한|수정된)`+
		`[^\n:：]{0,20}?(?:문장|표현|버전|댓글|글|텍스트|코멘트|의견|내용|결과)[^\n:：]{0,10}?(?:[:：]|니다[.!]?\s*\n|요[.!]?\s*\n)`,
	// "순화된 문장:", "정중한 표현 :"
	lead+`(?:순화|정중|공손|완곡|수정|재작성|다시)\s?(?:된|한|하게|히|쓴|작성한|작성된|바꾼|고친|다듬은|\s)*\s?`+
		`(?:문장|표현|버전|댓글|글|텍스트|코멘트|결과|의견)[\s*_]*[:：]`,
)

// refusals are answers that decline instead of rewriting; a comment may well say
// "I'm sorry, but I can't recommend this", so each needs what only a model says.
var refusals = compile(
	lead+`(?:i['’]?m sorry|i am sorry|sorry|i apologi[sz]e)?[,.]?\s*(?:but )?\s*i(?: can['’]?t| cannot|['’]m unable to| am unable to|['’]m not able to| won['’]?t)\s+`+
		`(?:(?:help|assist)(?: you)? with (?:that|this|your request|rewriting)|(?:fulfil+|comply with) (?:that|this|your) request|(?:rewrite|rephrase) (?:that|this|the (?:comment|text)))`,
	lead+`as an ai(?: language model| assistant)?\b`,
	lead+`(?:죄송하지만|죄송합니다만|죄송합니다)[,.]?\s*(?:이|그|해당|요청하신)?\s*(?:요청|내용|문장|댓글)[^\n.]{0,30}?(?:도와드릴|처리할|수행할|응할|재작성할|바꿔 드릴|다시 쓸)\s?수 (?:없습니다|없어요)`,
	lead+`(?:저는 )?(?:AI|인공지능)\s?(?:언어 모델|모델|어시스턴트)?(?:로서|이기 때문에|이므로)`,
)

// trailingNote is a model's remark about its own work, below the text.
var trailingNote = regexp.MustCompile(`(?is)\n\s*\n[\s\pP\pS]*(?:note|explanation|changes made|참고|설명|수정 사항)[\s*_]*[:：]`)

func compile(patterns ...string) []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		out[i] = regexp.MustCompile(p)
	}
	return out
}

// startsLike reports whether the answer begins like one of the patterns and the
// input like none of them.
func startsLike(patterns []*regexp.Regexp, input, answer string) bool {
	match := func(s string) bool {
		for _, p := range patterns {
			if p.MatchString(s) {
				return true
			}
		}
		return false
	}
	return match(answer) && !match(input)
}

// quotes pairs the marks that models put around a whole answer.
var quotes = []struct{ open, closing string }{
	{"```", "```"}, {`"`, `"`}, {"'", "'"}, {"`", "`"}, {"“", "”"}, {"”", "”"}, {"„", "“"}, {"‘", "’"},
	{"«", "»"}, {"「", "」"}, {"『", "』"}, {"《", "》"}, {"＂", "＂"},
}

// quoted reports whether one pair of marks stands around all of s and nowhere
// inside: `"Great" they said, "the best"` is not quoted as a whole.
func quoted(s string) bool {
	for _, q := range quotes {
		inner, ok := strings.CutPrefix(s, q.open)
		if !ok {
			continue
		}
		if inner, ok = strings.CutSuffix(inner, q.closing); !ok || inner == "" {
			continue
		}
		// An apostrophe inside is no mark.
		if q.open == "'" || q.open == "‘" {
			return true
		}
		if !strings.Contains(inner, q.open) && !strings.Contains(inner, q.closing) {
			return true
		}
	}
	return false
}

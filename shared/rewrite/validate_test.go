package rewrite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestValidate_honestRewritesPass(t *testing.T) {
	for _, c := range []struct{ name, in, out string }{
		{"unchanged", "The pace was a bit fast.", "The pace was a bit fast."},
		{"one word insult", "Trash.", "I was disappointed with this product and expected better quality for the price."},
		{"korean one word", "쓰레기", "기대에 많이 미치지 못해 아쉬웠습니다."},
		{"korean sentence", "강의 진짜 개노답. 준비도 안 하고 뭐 하는 거냐?", "강의가 많이 아쉬웠습니다. 준비가 부족해 보였는데 이유가 궁금합니다."},
		{"korean with english words", "UI가 trash 수준이고 login도 안 됨", "UI가 많이 아쉽고 login도 되지 않습니다."},
		{"english with a korean name", "Prof. 김철수 is a clown", "Prof. 김철수 could be more professional."},
		{"shouting shrinks", "WORST" + strings.Repeat("!", 500), "This was disappointing."},
		{"laughter shrinks", "이걸 돈 받고 팔아?" + strings.Repeat("ㅋ", 400), "이 품질에 값을 받는 것은 아쉽습니다."},
		{"rant repeats itself", strings.Repeat("bad ", 40), "It was bad throughout."},
		{"emoji only", "💩💩💩🤮", "별로였어요."},
		{"emoji only to emoji", "💩", "🙁"},
		{"too short for a language", "lol", "재미있네요"},
		{"starts with a list", "Here are the damn problems: no sound, no slides", "Here are the problems: no sound, no slides."},
		{"speaks of a revised thing", "The revised manual is crap: page 3 is wrong", "This is the revised manual, and it still has mistakes: page 3 is wrong."},
		{"input has the preamble", "Here's a rewritten version: garbage in, garbage out", "Here is the rewritten version: what goes in comes out."},
		{"input has the korean preamble", "다음은 순화한 문장입니다: 쓰레기", "다음은 순화한 문장입니다: 아쉬운 결과물입니다."},
		{"korean list", "아래는 빡친 점이다: 느림, 버그", "아래는 아쉬운 점입니다: 느린 속도, 버그"},
		{"sorry is no refusal", "I can't recommend this crap", "I'm sorry, but I can't recommend this course."},
		{"cannot complete", "I can't complete the damn request form", "I cannot complete the request form."},
		{"korean sorry", "환불도 안 해주고 최악", "죄송하지만 환불을 받을 수 없어 매우 아쉽습니다."},
		{"quotes inside at both ends", `"Best course ever" my ass, more like "waste of money"`, `"Best course ever" does not fit; for me it was a "waste of money"`},
		{"input is quoted", `"This is garbage"`, `"This falls short"`},
		{"apostrophe", "'90s tech, overpriced", "'90s technology at a high price"},
		{"japanese kanji to kana", "最悪の授業だ。金返せ。", "とてもざんねんなじゅぎょうでした。"},
		{"multi-line", "Bad.\n\nReally bad.", "It fell short.\n\nIt really did."},
		{"note in the input", "Bad.\n\nNote: refund me", "It fell short.\n\nNote: I would like a refund."},
		{"double spaces and tabs", "bad\tthing", "poor\tthing"},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Empty(t, Validate(c.in, c.out)) })
	}
}

func TestValidate_refusesWhatModelsDoWrong(t *testing.T) {
	long := strings.Repeat("The lecturer reads the slides aloud and answers nothing. ", 20)
	korean := "이 강의는 정말 최악이고 시간 낭비였다."
	english := "This course is a complete waste of time."
	for _, c := range []struct{ in, out, want string }{
		{english, "", "answer_empty"},
		{english, " \n\t\u200b\u3000", "answer_empty"},
		{english, "fine\x00", "answer_garbled"},
		{english, "fi\ufffdne course overall", "answer_garbled"},
		{long, "Bad.", "answer_too_short"},
		{"Bad.", strings.Repeat("It was a learning experience. ", 20), "answer_too_long"},
		{english, "Here's a rewritten version: The course fell short.", "answer_preamble"},
		{english, "Here’s a more polite way to say it:\n\nThe course fell short.", "answer_preamble"},
		{english, "Sure! Here is the revised comment: The course fell short.", "answer_preamble"},
		{english, "**Polite version:** The course fell short.", "answer_preamble"},
		{english, "Rewritten: The course fell short.", "answer_preamble"},
		{english, "Here is a polite rewrite:\nThe course fell short.", "answer_preamble"},
		{english, "Certainly! I'd be happy to rewrite this. The course fell short.", "answer_preamble"},
		{english, "The following is a softened version of the text: it fell short.", "answer_preamble"},
		{korean, "다음은 정중하게 바꾼 문장입니다: 강의가 아쉬웠습니다.", "answer_preamble"},
		{korean, "네, 아래는 순화한 표현입니다.\n\n강의가 아쉬웠습니다.", "answer_preamble"},
		{korean, "물론입니다! 다음은 공손하게 다듬은 버전이에요:\n강의가 아쉬웠습니다.", "answer_preamble"},
		{korean, "순화된 문장: 강의가 아쉬웠습니다.", "answer_preamble"},
		{korean, "**정중한 표현:** 강의가 아쉬웠습니다.", "answer_preamble"},
		{english, "I'm sorry, but I can't assist with that.", "answer_refusal"},
		{english, "As an AI language model, I do not have opinions.", "answer_refusal"},
		{korean, "죄송하지만 해당 요청은 도와드릴 수 없습니다.", "answer_refusal"},
		{english, "The course fell short.\n\nNote: I removed the insult.", "answer_note"},
		{korean, "강의가 아쉬웠습니다.\n\n(설명: 비속어를 뺐습니다.)", "answer_note"},
		{english, `"The course fell short."`, "answer_quoted"},
		{english, "“The course fell short.”", "answer_quoted"},
		{english, "```\nThe course fell short.\n```", "answer_quoted"},
		{korean, "「강의가 아쉬웠습니다.」", "answer_quoted"},
		{english, "강의가 많이 아쉬웠습니다.", "answer_language"},
		{korean, "The course fell short of my expectations.", "answer_language"},
		{english, "👍👍", "answer_language"},
		{"最悪の授業だった。お金を返してほしい。", "这门课让我很失望，希望退款。", "answer_language"},
		{"这门课太垃圾了，赶紧退钱", "この授業はざんねんでした。", "answer_language"},
		{"Отвратительный курс, верните деньги", "The course fell short, please refund me.", "answer_language"},
	} {
		t.Run(c.want, func(t *testing.T) { assert.Equal(t, c.want, Validate(c.in, c.out), c.out) })
	}
}

// The bounds themselves, one character to each side.
func TestValidate_lengthBounds(t *testing.T) {
	in := strings.Repeat("ab", 50)
	assert.Empty(t, Validate(in, strings.Repeat("cd", 250)))
	assert.Equal(t, "answer_too_long", Validate(in, strings.Repeat("cd", 250)+"e"))
	assert.Empty(t, Validate(in, "abcdefghij"))
	assert.Equal(t, "answer_too_short", Validate(in, "abcdefghi"))
	assert.Empty(t, Validate(strings.Repeat("ab", 39), "abc"), "below 80 characters any length may shrink")
}

func TestSubstance_countsRunsThreeTimesAtMost(t *testing.T) {
	assert.Equal(t, 0, substance(""))
	assert.Equal(t, 6, substance("aaaaaabbbb"))
	assert.Equal(t, 3, substance("ㅋㅋㅋㅋㅋㅋ"))
	assert.Equal(t, 8, substance("abababab"))
}

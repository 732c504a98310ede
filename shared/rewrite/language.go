package rewrite

import "unicode"

// script is a writing system this package tells apart.
type script int

const (
	hangul script = iota
	latin
	kana
	han
	cyrillic
	arabic
	otherScript
	scripts
)

// letters counts the letters of s by script, weighted: a syllable of Hangul, a
// kana or a Han character says about as much as two Latin letters.
type letters struct {
	by    [scripts]int
	total int
}

func countLetters(s string) letters {
	var l letters
	for _, r := range s {
		if !unicode.IsLetter(r) {
			continue
		}
		sc, weight := scriptOf(r)
		l.by[sc] += weight
		l.total += weight
	}
	return l
}

func scriptOf(r rune) (script, int) {
	switch {
	case unicode.Is(unicode.Hangul, r):
		return hangul, 2
	case unicode.Is(unicode.Latin, r):
		return latin, 1
	case unicode.In(r, unicode.Hiragana, unicode.Katakana):
		return kana, 2
	case unicode.Is(unicode.Han, r):
		return han, 2
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic, 1
	case unicode.Is(unicode.Arabic, r):
		return arabic, 1
	}
	return otherScript, 1
}

// minLetters is the weight below which a text is too short to have a language:
// "lol", "ㅋ", emoji.
const minLetters = 6

// sameLanguage reports whether nothing says that answer is in another language
// than input. It goes by script only: it tells Korean from English and Japanese
// from Chinese, not English from Spanish. A mixed input may be answered in any
// mixture of its scripts.
func sameLanguage(input, answer string) bool {
	in, out := countLetters(input), countLetters(answer)
	if in.total < minLetters {
		return true
	}
	if out.total == 0 {
		return false // a text became signs
	}
	if out.total < minLetters {
		return true
	}
	for sc := range scripts {
		// A script that carries the input must be there still.
		if in.by[sc]*10 >= in.total*7 && out.by[sc]*10 < out.total*3 {
			return joined(sc, in, out)
		}
		// A script the input does not have must not carry the answer.
		if in.by[sc] == 0 && out.by[sc]*2 > out.total {
			return joined(sc, in, out)
		}
	}
	// Han is in Chinese and in Japanese; kana tell them apart.
	japanese := in.by[kana] >= minLetters
	chinese := in.by[kana] == 0 && in.by[han]*10 >= in.total*7
	if japanese && out.by[kana] == 0 && out.by[han] > 0 || chinese && out.by[kana] >= minLetters {
		return false
	}
	return true
}

// joined reports whether sc is one of Japanese's scripts and both texts are
// Japanese, which moves between kana and Han freely.
func joined(sc script, in, out letters) bool {
	return (sc == kana || sc == han) && in.by[kana] > 0 && out.by[kana] > 0
}

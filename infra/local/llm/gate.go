package llm

import (
	"regexp/syntax"
	"strings"
)

// A pattern is tried only on texts that hold one of the strings without which it
// cannot match. Looking for strings is a hundred times cheaper than running a
// regular expression, and few rules concern any one text.

// needs returns strings, lower-cased, of which every match of pattern holds at
// least one; nil when there are none to be had.
func needs(pattern string) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	return literals(re.Simplify())
}

func literals(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpCharClass:
		var all []string
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i+1]-re.Rune[i] > 2 || len(all) > 16 {
				return nil
			}
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				all = append(all, strings.ToLower(string(r)))
			}
		}
		return all
	case syntax.OpConcat:
		// Each part's strings would do; take those that say most.
		var best []string
		for _, sub := range re.Sub {
			if l := literals(sub); l != nil && (best == nil || shortest(l) > shortest(best)) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			l := literals(sub)
			if l == nil {
				return nil
			}
			all = append(all, l...)
		}
		return all
	}
	return nil
}

func shortest(l []string) int {
	n := len(l[0])
	for _, s := range l {
		n = min(n, len(s))
	}
	return n
}

// concerns reports whether r may match a text whose lower-cased form is given.
func (r rule) concerns(lower string) bool {
	if r.needs == nil {
		return true
	}
	for _, n := range r.needs {
		if strings.Contains(lower, n) {
			return true
		}
	}
	return false
}

package rewrite

import (
	"regexp"
	"strings"
	"unicode"
)

// codeLike is what vendors' codes look like. A longer or odder value may be text
// and is not shown.
var codeLike = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// knownCodes are shown whatever the comment says: codes and types that OpenAI and
// servers compatible with it document.
var knownCodes = map[string]bool{
	"insufficient_quota": true, "rate_limit_exceeded": true, "rate_limit_error": true,
	"invalid_request_error": true, "invalid_api_key": true, "authentication_error": true,
	"permission_error": true, "permission_denied": true, "not_found_error": true,
	"model_not_found": true, "context_length_exceeded": true, "string_above_max_length": true,
	"server_error": true, "internal_error": true, "internal_server_error": true,
	"api_error": true, "overloaded_error": true, "engine_overloaded": true,
	"service_unavailable": true, "billing_hard_limit_reached": true,
	"unsupported_value": true, "unsupported_parameter": true, "unknown_parameter": true,
	"content_filter": true, "content_policy_violation": true, "error_object": true,
	"requests": true, "tokens": true, "timeout": true,
}

// safe returns a code or type of the server when it can be shown: it looks like a
// code and holds no word of the comment and no piece of the key. Otherwise
// "other".
func (r *run) safe(s string) string {
	if s == "" || knownCodes[s] {
		return s
	}
	if !codeLike.MatchString(s) || holdsWord(s, r.text) || holdsPiece(s, r.key) {
		return "other"
	}
	return s
}

// holdsWord reports whether s holds a word of text of four characters or more, or
// is a piece of one.
func holdsWord(s, text string) bool {
	s = strings.ToLower(s)
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}) {
		if len(word) >= 4 && (strings.Contains(s, word) || len(s) >= 4 && strings.Contains(word, s)) {
			return true
		}
	}
	return len(s) >= 4 && strings.Contains(strings.ToLower(text), s)
}

// holdsPiece reports whether s holds four consecutive characters of key: vendors
// show a key's last four.
func holdsPiece(s, key string) bool {
	const piece = 4
	for i := 0; i+piece <= len(key); i++ {
		if strings.Contains(s, key[i:i+piece]) {
			return true
		}
	}
	return len(key) > 0 && len(key) < piece && strings.Contains(s, key)
}

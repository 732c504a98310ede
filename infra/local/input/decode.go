package input

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/unicode"
)

var errEncoding = errors.New("the text is neither UTF-8, UTF-16 nor CP949; save the file as UTF-8")

// decode returns data as UTF-8 without a byte order mark. A mark decides; without
// one, UTF-16 shows by its NUL bytes, and what is not UTF-8 is taken as CP949,
// as Excel writes it on Korean Windows. korean.EUCKR of x/text is CP949: the
// index of https://encoding.spec.whatwg.org/#euc-kr-decoder has its extension.
func decode(data []byte) (string, error) {
	switch {
	case bytes.HasPrefix(data, []byte{0xEF, 0xBB, 0xBF}):
		data = data[3:]
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		return transform(unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM), data)
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return transform(unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM), data)
	case len(data) >= 2 && data[0] != 0 && data[1] == 0:
		return transform(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), data)
	case len(data) >= 2 && data[0] == 0 && data[1] != 0:
		return transform(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), data)
	}
	if utf8.Valid(data) {
		return string(data), nil
	}
	return transform(korean.EUCKR, data)
}

// transform decodes data and refuses what the encoding does not know, which its
// decoder would replace by U+FFFD.
func transform(e encoding.Encoding, data []byte) (string, error) {
	b, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return "", fmt.Errorf("decode the text: %w", err)
	}
	if s := string(b); !strings.ContainsRune(s, utf8.RuneError) {
		return s, nil
	}
	return "", errEncoding
}

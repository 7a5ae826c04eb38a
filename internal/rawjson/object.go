package rawjson

import "bytes"

// IsObject reports whether b is exactly one JSON object that passes [Check].
func IsObject(b []byte, lim Limits) bool {
	i := SkipSpace(b, 0)
	return i < len(b) && b[i] == '{' && Check(b, lim) == nil
}

// Object returns the object that b contains, without the white space around it. ok is false if b is anything else. Only what [Scan]
// checks is checked.
func Object(b []byte) (object []byte, ok bool) {
	start := SkipSpace(b, 0)
	end, err := Scan(b, start)
	if err != nil || b[start] != '{' || SkipSpace(b, end) != len(b) {
		return nil, false
	}
	return b[start:end], true
}

// UnwrapObject removes a wrapping that models put around an object: a Markdown code fence, or the quotes of a JSON string. A JSON string
// that contains only white space or null becomes {}. ok is false if text has no such wrapping. The result begins with '{' and is not
// checked further; after a fence it is a subslice of text. text must have no white space around it.
func UnwrapObject(text []byte) (object []byte, ok bool) {
	if body, ok := bytes.CutPrefix(text, []byte("```")); ok {
		if body, ok = bytes.CutSuffix(body, []byte("```")); !ok {
			return nil, false
		}
		body = bytes.Trim(bytes.TrimPrefix(body, []byte("json")), " \t\r\n")
		return body, len(body) > 0 && body[0] == '{'
	}
	if len(text) == 0 || text[0] != '"' {
		return nil, false
	}
	inner, err := AppendUnquote(nil, text)
	if err != nil {
		return nil, false
	}
	inner = bytes.Trim(inner, " \t\r\n")
	if len(inner) == 0 || string(inner) == "null" {
		return []byte("{}"), true
	}
	return inner, inner[0] == '{'
}

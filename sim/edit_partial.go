package sim

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// partialArgs sends the arguments of calls as Google's servers do if arguments are streamed: as values with JSONPaths, each string in two
// pieces. A call with a list or an object among its arguments is not changed. The call {"name":"add","args":{"on":true}} becomes
//
//	{"functionCall":{"name":"add","willContinue":true}}
//	{"functionCall":{"partialArgs":[{"jsonPath":"$['on']","boolValue":true}],"willContinue":true}}
//	{"functionCall":{}}
func partialArgs(_ lathe.Wire, events []streamed) []streamed {
	var out []streamed
	for _, e := range events {
		part := firstOf(get(get(firstOf(get(e.data, "candidates")), "content"), "parts"))
		call := get(part, "functionCall")
		pieces, ok := argPieces(get(call, "args"))
		if call == "" || !ok {
			out = append(out, e)
			continue
		}
		head := strings.TrimSuffix(set(call, "args", ""), "}") + `,"willContinue":true}`
		parts := []string{set(part, "functionCall", head)}
		for _, piece := range pieces {
			parts = append(parts, `{"functionCall":{"partialArgs":[`+piece+`],"willContinue":true}}`)
		}
		parts = append(parts, `{"functionCall":{}}`)
		for _, p := range parts {
			out = append(out, streamed{data: strings.Replace(e.data, part, p, 1)})
		}
	}
	return out
}

// firstOf returns the first element of an array; "" if none exists.
func firstOf(array string) string {
	for v := range rawjson.Elements([]byte(array)) {
		return string(v)
	}
	return ""
}

// argPieces returns the elements of partialArgs for an object. ok is false if one of its values cannot be written so.
func argPieces(object string) (pieces []string, ok bool) {
	if !strings.HasPrefix(object, "{") {
		return nil, false
	}
	for key, value := range rawjson.Members([]byte(object)) {
		path := `{"jsonPath":` + quote("$['"+rawjson.Text(key)+"']")
		switch value[0] {
		case '"':
			text := rawjson.Text(value)
			n := runeCut(text, max(1, len(text)/2))
			pieces = append(pieces, path+`,"stringValue":`+quote(text[:n])+`,"willContinue":true}`, path+`,"stringValue":`+quote(text[n:])+"}")
		case 't', 'f':
			pieces = append(pieces, path+`,"boolValue":`+string(value)+"}")
		case 'n':
			pieces = append(pieces, path+`,"nullValue":"NULL_VALUE"}`)
		case '{', '[':
			return nil, false
		default:
			pieces = append(pieces, path+`,"numberValue":`+string(value)+"}")
		}
	}
	return pieces, true
}

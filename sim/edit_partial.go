package sim

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// partialArgs sends the arguments of calls as Google's servers do if arguments are streamed: as values with JSONPaths, each string in two
// pieces. A call with a list or an object among its arguments is not changed.
func partialArgs(_ lathe.Wire, events []streamed) []streamed {
	for i := 0; i < len(events); i++ {
		part := firstOf(get(get(firstOf(get(events[i].data, "candidates")), "content"), "parts"))
		call := get(part, "functionCall")
		pieces, ok := argPieces(get(call, "args"))
		if call == "" || !ok {
			continue
		}
		head := strings.TrimSuffix(set(call, "args", ""), "}") + `,"willContinue":true}`
		parts := []string{set(part, "functionCall", head)}
		for _, piece := range pieces {
			parts = append(parts, `{"functionCall":{"partialArgs":[`+piece+`],"willContinue":true}}`)
		}
		parts = append(parts, `{"functionCall":{}}`)
		var more []streamed
		for _, p := range parts {
			more = append(more, streamed{data: strings.Replace(events[i].data, part, p, 1)})
		}
		events = slices.Replace(events, i, i+1, more...)
		i += len(more) - 1
	}
	return events
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

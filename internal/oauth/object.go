package oauth

import (
	"errors"
	"strconv"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// An object is a JSON object that has been checked. Members are found by their exact names.
type object []byte

var errNoObject = errors.New("the answer is not a JSON object")

func readObject(b []byte) (object, error) {
	if rawjson.Check(b, rawjson.Limits{}) != nil {
		return nil, errNoObject
	}
	b = b[rawjson.SkipSpace(b, 0):]
	if b[0] != '{' {
		return nil, errNoObject
	}
	return b, nil
}

// text returns a member that is a string, and "" for any other.
func (o object) text(name string) string {
	v, ok := rawjson.Get(o, name)
	if !ok || v[0] != '"' {
		return ""
	}
	s, err := rawjson.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(s)
}

// texts returns the strings of a member that is an array; known says that it is one.
func (o object) texts(name string) (list []string, known bool) {
	v, ok := rawjson.Get(o, name)
	if !ok || v[0] != '[' {
		return nil, false
	}
	for e := range rawjson.Elements(v) {
		if s, err := rawjson.AppendUnquote(nil, e); e[0] == '"' && err == nil {
			list = append(list, string(s))
		}
	}
	return list, true
}

func (o object) isTrue(name string) bool {
	v, ok := rawjson.Get(o, name)
	return ok && string(v) == "true"
}

// seconds returns a member that is a number of seconds, or such a number as a string; 0 for any other.
func (o object) seconds(name string) int64 {
	v, ok := rawjson.Get(o, name)
	if !ok {
		return 0
	}
	s := string(v)
	if v[0] == '"' {
		s = o.text(name)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1e10 {
		return 0
	}
	return int64(f)
}

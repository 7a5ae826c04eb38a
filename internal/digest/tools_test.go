package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/lathe-run/lathe"
)

func hash64(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestTools(t *testing.T) {
	t.Parallel()
	a := &lathe.ToolSpec{Name: "add", Description: "adds\n<two>", Schema: json.RawMessage(`{ "type":"object", "properties":{"y":{},"x":{"minimum":1.0}} }`)}
	now := &lathe.ToolSpec{Name: "now", Hidden: true, Origin: "go"}
	broken := &lathe.ToolSpec{Name: "zap", Schema: json.RawMessage(`{"a":`)}
	const (
		aText   = `{"description":"adds\n<two>","name":"add","parameters":{"properties":{"x":{"minimum":1},"y":{}},"type":"object"}}`
		nowText = `{"description":"","name":"now","parameters":{"properties":{},"type":"object"}}`
		zapText = `{"description":"","name":"zap","parameters":"{\"a\":"}`
	)
	tests := []struct {
		name  string
		specs []*lathe.ToolSpec
		want  string
	}{
		{"none", nil, `[]`},
		{"empty", []*lathe.ToolSpec{}, `[]`},
		{"one", []*lathe.ToolSpec{a}, `[` + aText + `]`},
		{"sorted", []*lathe.ToolSpec{a, now}, `[` + aText + `,` + nowText + `]`},
		{"not sorted", []*lathe.ToolSpec{now, a}, `[` + aText + `,` + nowText + `]`},
		{"broken schema", []*lathe.ToolSpec{broken, now}, `[` + nowText + `,` + zapText + `]`},
		{"blank schema", []*lathe.ToolSpec{{Name: "now", Schema: json.RawMessage(" \n")}}, `[` + nowText + `]`},
	}
	for _, tt := range tests {
		if got, want := Tools(tt.specs), hash64(tt.want); got != want {
			t.Errorf("%s: %s, want %s, the hash of %s", tt.name, got, want, tt.want)
		}
	}
	two := []*lathe.ToolSpec{now, a}
	Tools(two)
	if two[0] != now {
		t.Error("Tools sorts the caller's slice")
	}
	if Tools([]*lathe.ToolSpec{a, {Name: "add"}}) != Tools([]*lathe.ToolSpec{{Name: "add"}, a}) {
		t.Error("the hash of two tools of one name depends on their order")
	}
}

func TestNoTools(t *testing.T) {
	t.Parallel()
	if got := Tools(nil); got != NoTools {
		t.Errorf("NoTools is %s, and the hash of no tools %s", NoTools, got)
	}
}

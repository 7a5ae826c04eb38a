package sim

import (
	"slices"
	"testing"
)

// A name is found whatever the letter case, also after letters whose lower case has another number of bytes.
func TestNamedValues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		clause, name, want string
		ok                 bool
	}{
		{"search with Text=abc", "text", "abc", true},
		{"ȺȺȺȺȺ text", "text", "", false},
		{"ȺȺȺȺȺ text: abc", "text", "abc", true},
		{"İİ İ text: abc", "text", "abc", true},
		{"context: abc", "text", "", false},
		{"", "text", "", false},
	} {
		got, ok := (&source{clause: tt.clause}).named(tt.name)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%q in %q: %q, %v; want %q, %v", tt.name, tt.clause, got, ok, tt.want, tt.ok)
		}
	}
}

func TestClausesMayBeginWithThen(t *testing.T) {
	t.Parallel()
	got := clauses("Add 1 and 2 and then then tell me the time.")
	if want := []string{"Add 1 and 2", "then tell me the time"}; !slices.Equal(got, want) {
		t.Errorf("clauses %q, want %q", got, want)
	}
}

package wasmtool_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/tool/wasmtool"
)

// T33: a module is the one whose sum its manifest names. Another one is not loaded, neither at the
// start nor later, and what is there stays.
func TestT33_ModulesOfAnotherSumAreRefused(t *testing.T) {
	t.Parallel()
	answer := func(s string) []byte {
		m := toolModule(0, reply(16, len(s)))
		m.Data(16, s)
		return m.Bytes()
	}
	one, other := answer(`"one"`), answer(`"two"`)
	pinned := manifest + fmt.Sprintf("sha256: %x\n", sha256.Sum256(one))
	if f, err := wasmtool.OpenFolder(folder(t, other, pinned), nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%x", sha256.Sum256(other))) {
		t.Errorf("another module was loaded: %v", err)
		_ = f.Close()
	}
	dir := folder(t, one, pinned)
	f := open(t, dir)
	write(t, dir, "it.wasm", other)
	if changed, err := f.Reload(t.Context(), nil); changed || err == nil {
		t.Errorf("another module was taken: changed %v, %v", changed, err)
	}
	if got, _, _ := run(t, runner(t, f.List()), "it", "{}"); got.Content != "one" {
		t.Errorf("answered %q %s", got.Content, got.Code)
	}
}

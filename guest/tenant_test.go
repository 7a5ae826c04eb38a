package guest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe/guest"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// T29: two tenants have each a folder of their own. The same program, run for both at once, reads the
// file that each has, and reaches that of the other by no path, no link and no descriptor.
func TestT29FilesOfTwoTenants(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	tenants := []string{"ada", "bob"}
	for i, who := range tenants {
		dir, other := filepath.Join(base, who), filepath.Join(base, tenants[1-i])
		for _, err := range []error{os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "own.txt"), []byte(who+"'s text"), 0o600),
			os.Symlink(other, filepath.Join(dir, "folder")), os.Symlink(filepath.Join(other, "own.txt"), filepath.Join(dir, "file"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const fdAt, iovAt, textTo, count, size = 600, 608, 640, 616, 10 // places in memory, and the length of the text
	for _, who := range tenants {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			root, err := os.OpenRoot(filepath.Join(base, who))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = root.Close() })
			p := &probe{spear: &spear{New(), map[string]int{}}}
			open := p.Import("wasi_snapshot_preview1", "path_open", T{I32, I32, I32, I32, I32, I64, I64, I32, I32}, T{I32})
			read := p.Import("wasi_snapshot_preview1", "fd_read", T{I32, I32, I32, I32}, T{I32})
			p.index["fd_write"] = p.Import("wasi_snapshot_preview1", "fd_write", T{I32, I32, I32, I32}, T{I32})
			p.Memory(2, 2)
			p.texts = &texts{p.spear, textAt}
			opens := func(path string) {
				p.do(Const(3) + Const(1) + p.put(path) + Const(0) + Const64(2) + Const64(0) + Const(0) + Const(fdAt) + Call(open))
			}
			p.word(iovAt, textTo)
			p.word(iovAt+4, size)
			opens("own.txt")
			p.do(Const(fdAt) + Load(0) + Const(iovAt) + Const(1) + Const(count) + Call(read))
			p.show(textTo, size)
			paths := []string{"../ada/own.txt", "../bob/own.txt", "folder/own.txt", "file", base + "/ada/own.txt", base + "/bob/own.txt", ".."}
			for _, path := range paths {
				opens(path)
			}
			p.do(Const(5) + Const(iovAt) + Const(1) + Const(count) + Call(read)) // 4 is the only one that was opened
			got, shown, r := p.run(t, nil, nil, &guest.RunOptions{Principal: who, Files: []guest.FileGrant{{Guest: "/data", Root: root}}})
			r.ended(t, 0)
			if len(shown) != 1 || shown[0] != who+"'s text" {
				t.Errorf("it reads %q", shown)
			}
			for i, rc := range got {
				if opened := i < 2; opened != (rc == 0) {
					t.Errorf("step %d returns %d", i, rc)
				}
			}
			if len(got) != len(paths)+3 {
				t.Errorf("%d steps", len(got))
			}
		})
	}
}

package wasmrt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// WASI's numbers of the errors that are expected.
const (
	ok    = 0
	acces = 2
	isDir = 31
	noEnt = 44
	noSys = 52
	isRO  = 69
)

// fileGuest exports functions that do one thing with a path that stands at 1024, below descriptor 3:
// open(len, oflags, rights) opens and closes, and the others say what they are.
func fileGuest() *Module {
	m := New()
	open := m.Import(wasi, "path_open", T{I32, I32, I32, I32, I32, I64, I64, I32, I32}, T{I32})
	closes := m.Import(wasi, "fd_close", T{I32}, T{I32})
	read := m.Import(wasi, "fd_read", T{I32, I32, I32, I32}, T{I32})
	writes := m.Import(wasi, "fd_write", T{I32, I32, I32, I32}, T{I32})
	unlink := m.Import(wasi, "path_unlink_file", T{I32, I32, I32}, T{I32})
	mkdir := m.Import(wasi, "path_create_directory", T{I32, I32, I32}, T{I32})
	symlink := m.Import(wasi, "path_symlink", T{I32, I32, I32, I32, I32}, T{I32})
	link := m.Import(wasi, "path_link", T{I32, I32, I32, I32, I32, I32, I32}, T{I32})
	rename := m.Import(wasi, "path_rename", T{I32, I32, I32, I32, I32, I32}, T{I32})
	readlink := m.Import(wasi, "path_readlink", T{I32, I32, I32, I32, I32, I32}, T{I32})
	filestat := m.Import(wasi, "path_filestat_get", T{I32, I32, I32, I32, I32}, T{I32})
	readdir := m.Import(wasi, "fd_readdir", T{I32, I32, I32, I64, I32}, T{I32})
	seek := m.Import(wasi, "fd_seek", T{I32, I64, I32, I32}, T{I32})
	pwrite := m.Import(wasi, "fd_pwrite", T{I32, I32, I32, I64, I32}, T{I32})
	m.Memory(2, 2)
	const (
		fdRead    = 1 << 1
		fdWrite   = 1 << 6
		fdSeek    = 1 << 2
		path      = 1024
		other     = 3000
		fdAt      = 8
		iov       = 16 // 64 bytes at 64
		count     = 32
		readAll   = 3
		following = 1
	)
	m.Data(iov, "\x40\x00\x00\x00\x40\x00\x00\x00")
	m.Data(other, "new")
	opened := func(flags int32, rights int64) string {
		return Const(3) + Const(following) + Const(path) + Get(0) + Const(flags) + Const64(rights) + Const64(rights) + Const(0) + Const(fdAt) + Call(open)
	}
	m.Func("read", T{I32}, T{I32}, 1, opened(0, fdRead), Tee(1), If(Get(1), Return),
		Const(fdAt), Load(0), Const(iov), Const(1), Const(count), Call(read), Drop, Const(fdAt), Load(0), Call(closes))
	m.Func("write", T{I32}, T{I32}, 1, opened(1, fdWrite), Tee(1), If(Get(1), Return), // O_CREAT
		Const(fdAt), Load(0), Const(iov), Const(1), Const(count), Call(writes), Drop, Const(fdAt), Load(0), Call(closes))
	m.Func("leak", T{I32}, nil, 0, Loop(opened(0, fdRead), Drop, Br(0)))
	m.Func("litter", T{I32}, nil, 0, Loop(opened(1, fdWrite), Drop, Const(fdAt), Load(0), Call(closes), Drop, Const(3), Const(path), Get(0), Call(unlink), Drop, Br(0)))
	m.Func("folders", T{I32}, nil, 0, Loop(Const(3), Const(path), Get(0), Call(mkdir), Drop, Br(0)))
	m.Func("flood", T{I32}, nil, 0, opened(1, fdWrite), Drop,
		Loop(Const(fdAt), Load(0), Const(iov), Const(1), Const(count), Call(writes), Drop, Br(0)))
	m.Func("sparse", T{I32}, nil, 0, opened(1, fdWrite|fdSeek), Drop,
		Const(fdAt), Load(0), Const64(1<<40), Const(0), Const(count), Call(seek), Drop,
		Const(fdAt), Load(0), Const(iov), Const(1), Const(count), Call(writes), Drop)
	m.Func("pwrite", T{I32}, nil, 0, opened(1, fdWrite|fdSeek), Drop,
		Const(fdAt), Load(0), Const(iov), Const(1), Const64(1<<40), Const(count), Call(pwrite), Drop)
	m.Func("unlink", T{I32}, T{I32}, 0, Const(3), Const(path), Get(0), Call(unlink))
	m.Func("mkdir", T{I32}, T{I32}, 0, Const(3), Const(path), Get(0), Call(mkdir))
	m.Func("symlink", T{I32}, T{I32}, 0, Const(path), Get(0), Const(3), Const(other), Const(3), Call(symlink))
	m.Func("link", T{I32}, T{I32}, 0, Const(3), Const(0), Const(path), Get(0), Const(3), Const(other), Const(3), Call(link))
	m.Func("rename", T{I32}, T{I32}, 0, Const(3), Const(path), Get(0), Const(3), Const(other), Const(3), Call(rename))
	m.Func("readlink", T{I32}, T{I32}, 0, Const(3), Const(path), Get(0), Const(5000), Const(100), Const(5200), Call(readlink))
	m.Func("stat", T{I32}, T{I32}, 0, Const(3), Const(following), Const(path), Get(0), Const(5000), Call(filestat))
	m.Func("list", T{I32}, T{I32}, 0, Const(3), Const(6000), Const(2000), Const64(0), Const(8000), Call(readdir))
	return m
}

// Nothing outside of the folder is reached, whatever the path and the link, and a folder that may
// only be read is not changed.
func TestT29Files(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	dir := filepath.Join(outside, "granted")
	for _, err := range []error{
		os.Mkdir(dir, 0o700), os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		os.WriteFile(filepath.Join(outside, "secret"), []byte("SECRET"), 0o600),
		os.WriteFile(filepath.Join(dir, "file"), []byte("public"), 0o600),
		os.WriteFile(filepath.Join(dir, "sub", "deep"), []byte("deeper"), 0o600),
		os.Symlink("../secret", filepath.Join(dir, "up")), os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "far")),
		os.Symlink("file", filepath.Join(dir, "near")), os.Symlink("..", filepath.Join(dir, "parent")),
		os.Symlink("../created", filepath.Join(dir, "dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	mod := compile(t, runtime(t, nil), fileGuest(), nil)
	do := func(write bool, fn, path string) (uint64, string) {
		i := start(t, mod, &wasmrt.InstanceOptions{Grants: wasmrt.Grants{Files: []wasmrt.FileGrant{{Guest: "/data", Root: root, Write: write}}}})
		if err := i.Memory().Write(1024, []byte(path)); err != nil {
			t.Fatal(err)
		}
		res, err := i.Invoke(t.Context(), fn, uint64(len(path)))
		if err != nil {
			t.Fatalf("%s %s: %v", fn, path, err)
		}
		b, err := i.Memory().Read(64, 6)
		if err != nil {
			t.Fatal(err)
		}
		return res[0], string(b)
	}
	for _, path := range []string{"up", "far", "parent/secret", "../secret", "sub/../../secret", "/etc/passwd", "//etc/passwd", "./../secret", "sub/../../granted/../secret", "dangling"} {
		for _, fn := range []string{"read", "write", "stat", "unlink"} {
			if fn == "unlink" && (path == "up" || path == "far" || path == "dangling") {
				continue // removing the link itself is fine
			}
			if no, got := do(true, fn, path); no == ok && fn != "write" || got == "SECRET" {
				t.Errorf("%s %s: errno %d, reads %q", fn, path, no, got)
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(b) != "SECRET" {
		t.Errorf("the secret is now %q, %v", b, err)
	}
	for _, tt := range []struct {
		write    bool
		fn, path string
		want     uint64
		reads    string
	}{
		{false, "read", "file", ok, "public"},
		{false, "read", "./file", ok, "public"},
		{false, "read", "near", ok, "public"},
		{false, "read", "sub/deep", ok, "deeper"},
		{false, "read", "none", noEnt, ""},
		{false, "list", "", ok, ""},
		{false, "stat", "file", ok, ""},
		{false, "write", "file", isRO, ""},
		{false, "write", "fresh", isRO, ""},
		{false, "mkdir", "fresh", isRO, ""},
		{false, "unlink", "file", isRO, ""},
		{false, "rename", "file", isRO, ""},
		{false, "symlink", "file", noSys, ""},
		{true, "symlink", "../secret", noSys, ""},
		{true, "link", "file", noSys, ""},
		{true, "readlink", "up", noSys, ""},
		{true, "write", "fresh", ok, ""},
		{true, "mkdir", "folder", ok, ""},
		{true, "unlink", "folder", isDir, ""},
		{true, "rename", "fresh", ok, ""},
		{true, "unlink", "new", ok, ""},
	} {
		if no, got := do(tt.write, tt.fn, tt.path); no != tt.want || tt.reads != "" && got != tt.reads {
			t.Errorf("write %v, %s %q: errno %d, reads %q; want %d %q", tt.write, tt.fn, tt.path, no, got, tt.want, tt.reads)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 2 {
		t.Errorf("outside there are %v, %v", entries, err)
	}
}

// Without a grant there is no file at all.
func TestT29NoFiles(t *testing.T) {
	t.Parallel()
	i := start(t, compile(t, runtime(t, nil), fileGuest(), nil), nil)
	for _, path := range []string{"/etc/passwd", "etc/passwd", "."} {
		if err := i.Memory().Write(1024, []byte(path)); err != nil {
			t.Fatal(err)
		}
		if res, err := i.Invoke(t.Context(), "read", uint64(len(path))); err != nil || res[0] == ok {
			t.Errorf("%s: %v %v", path, res, err)
		}
	}
}

func TestT30FileFloods(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fn, limit string }{{"leak", "open_files"}, {"flood", "file_bytes"}, {"sparse", "file_bytes"}, {"pwrite", "file_bytes"},
		{"litter", "new_files"}, {"folders", "new_files"}} {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		mod := compile(t, runtime(t, nil), fileGuest(), &wasmrt.Limits{OpenFiles: 5, FileBytes: 1000, NewFiles: 7})
		i := start(t, mod, &wasmrt.InstanceOptions{Grants: wasmrt.Grants{Files: []wasmrt.FileGrant{{Guest: "/", Root: root, Write: true}}}})
		if err := i.Memory().Write(1024, []byte("f")); err != nil {
			t.Fatal(err)
		}
		_, err = i.Invoke(t.Context(), tt.fn, 1)
		want(t, err, wasmrt.KindLimit, tt.limit)
		if info, err := os.Stat(filepath.Join(dir, "f")); tt.fn != "litter" && err != nil || err == nil && info.Size() > 1000 {
			t.Errorf("the file has %v, %v", info, err)
		}
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	}
}

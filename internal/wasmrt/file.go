package wasmrt

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/tetratelabs/wazero"
	esys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"
)

// A FileGrant makes the files below Root visible to a guest below the path Guest. No path and no link leads out of Root, and guests
// cannot create links. Only regular files and folders can be opened.
type FileGrant struct {
	Guest string // such as "/data"
	Root  *os.Root
	Write bool // also create, change, rename and remove files
}

// mounts returns the configuration of the granted files.
func (e *env) mounts() wazero.FSConfig {
	cfg := wazero.NewFSConfig()
	for i := range e.grants.Files {
		g := &e.grants.Files[i]
		cfg = cfg.(sysfs.FSConfig).WithSysFSMount(&rootFS{env: e, root: g.Root, write: g.Write}, g.Guest)
	}
	return cfg
}

// rootFS is a file system below one root. Operations on links, owners, modes and times return ENOSYS.
type rootFS struct {
	esys.UnimplementedFS
	env   *env
	root  *os.Root
	write bool
}

// local returns the path in the form that os.Root requires. Paths of the guest are relative to the root of the mount.
func local(p string) string {
	p = strings.TrimPrefix(p, "/")
	if p == "" {
		return "."
	}
	return path.Clean(p)
}

func (f *rootFS) OpenFile(name string, flag esys.Oflag, _ fs.FileMode) (esys.File, esys.Errno) {
	changes := flag&(esys.O_RDWR|esys.O_WRONLY|esys.O_CREAT|esys.O_TRUNC|esys.O_APPEND) != 0
	if changes && !f.write {
		return nil, esys.EROFS
	}
	name = local(name)
	// Opening a pipe or a device could block the host.
	info, err := f.root.Stat(name)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil && !info.Mode().IsRegular() && !info.IsDir():
		return nil, esys.EACCES
	case err == nil && !info.IsDir() && flag&esys.O_DIRECTORY != 0:
		return nil, esys.ENOTDIR
	case err == nil && info.IsDir() && changes:
		return nil, esys.EISDIR
	case err != nil && !missing:
		return nil, errno(err)
	}
	if f.env.files >= f.env.limits.OpenFiles {
		f.env.halt(overLimit("open_files", "more than %d files are open", f.env.limits.OpenFiles))
	}
	if flag&esys.O_CREAT != 0 && missing {
		f.env.countCreated()
	}
	file, err := f.root.OpenFile(name, flags(flag), 0o600)
	if err != nil {
		return nil, errno(err)
	}
	f.env.files++
	return &rootFile{env: f.env, file: file, write: f.write, append: flag&esys.O_APPEND != 0}, 0
}

func flags(f esys.Oflag) int {
	n := os.O_RDONLY
	switch {
	case f&esys.O_RDWR != 0:
		n = os.O_RDWR
	case f&esys.O_WRONLY != 0:
		n = os.O_WRONLY
	}
	for _, p := range []struct {
		from esys.Oflag
		to   int
	}{{esys.O_APPEND, os.O_APPEND}, {esys.O_CREAT, os.O_CREATE}, {esys.O_EXCL, os.O_EXCL}, {esys.O_TRUNC, os.O_TRUNC}} {
		if f&p.from != 0 {
			n |= p.to
		}
	}
	return n
}

// errno returns the error number for the guest. For a path that leads out of the root, it is EPERM.
func errno(err error) esys.Errno {
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return 0
	case errors.Is(err, fs.ErrNotExist):
		return esys.ENOENT
	case errors.Is(err, fs.ErrExist):
		return esys.EEXIST
	case errors.Is(err, fs.ErrClosed):
		return esys.EBADF
	case errors.Is(err, fs.ErrInvalid):
		return esys.EINVAL
	}
	if n := esys.UnwrapOSError(err); n != 0 && n != esys.EIO {
		return n
	}
	return esys.EPERM
}

func stat(info fs.FileInfo, err error) (sys.Stat_t, esys.Errno) {
	if err != nil {
		return sys.Stat_t{}, errno(err)
	}
	at := info.ModTime().UnixNano()
	return sys.Stat_t{Mode: info.Mode(), Nlink: 1, Size: info.Size(), Atim: at, Mtim: at, Ctim: at}, 0
}

func (f *rootFS) Lstat(name string) (sys.Stat_t, esys.Errno) { return stat(f.root.Lstat(local(name))) }
func (f *rootFS) Stat(name string) (sys.Stat_t, esys.Errno)  { return stat(f.root.Stat(local(name))) }

func (f *rootFS) change(do func() error) esys.Errno {
	if !f.write {
		return esys.EROFS
	}
	return errno(do())
}

func (f *rootFS) Mkdir(name string, _ fs.FileMode) esys.Errno {
	return f.change(func() error {
		f.env.countCreated()
		return f.root.Mkdir(local(name), 0o700)
	})
}

func (f *rootFS) Rename(from, to string) esys.Errno {
	return f.change(func() error { return f.root.Rename(local(from), local(to)) })
}

func (f *rootFS) Rmdir(name string) esys.Errno  { return f.remove(name, fs.ModeDir) }
func (f *rootFS) Unlink(name string) esys.Errno { return f.remove(name, 0) }

// remove removes a folder if kind is [fs.ModeDir], and any other file if it is 0.
func (f *rootFS) remove(name string, kind fs.FileMode) esys.Errno {
	info, err := f.root.Lstat(local(name))
	switch {
	case !f.write:
		return esys.EROFS
	case err != nil:
		return errno(err)
	case kind.IsDir() && !info.IsDir():
		return esys.ENOTDIR
	case !kind.IsDir() && info.IsDir():
		return esys.EISDIR
	}
	return errno(f.root.Remove(local(name)))
}

// rootFile is an open file or folder of a rootFS.
type rootFile struct {
	esys.UnimplementedFile
	env           *env
	file          *os.File
	write, append bool
	moved         bool // the offset was changed since the last write
}

func (f *rootFile) IsDir() (bool, esys.Errno) {
	info, err := f.file.Stat()
	if err != nil {
		return false, errno(err)
	}
	return info.IsDir(), 0
}

func (f *rootFile) Stat() (sys.Stat_t, esys.Errno) { return stat(f.file.Stat()) }
func (f *rootFile) IsAppend() bool                 { return f.append }

func (f *rootFile) SetAppend(on bool) esys.Errno {
	if on == f.append {
		return 0
	}
	return esys.ENOSYS
}

func (f *rootFile) Read(p []byte) (int, esys.Errno) {
	n, err := f.file.Read(p)
	f.env.useFile(int64(n))
	return n, errno(err)
}

func (f *rootFile) Pread(p []byte, off int64) (int, esys.Errno) {
	n, err := f.file.ReadAt(p, off)
	f.env.useFile(int64(n))
	return n, errno(err)
}

func (f *rootFile) Write(p []byte) (int, esys.Errno) {
	if f.moved && !f.append {
		at, err := f.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return 0, errno(err)
		}
		if no := f.reach(at); no != 0 {
			return 0, no
		}
	}
	f.moved = false
	f.env.useFile(int64(len(p)))
	n, err := f.file.Write(p)
	return n, errno(err)
}

func (f *rootFile) Pwrite(p []byte, off int64) (int, esys.Errno) {
	if no := f.reach(off); no != 0 {
		return 0, no
	}
	f.env.useFile(int64(len(p)))
	n, err := f.file.WriteAt(p, off)
	return n, errno(err)
}

// offset is an alias so that vet does not compare Seek with the method of io.Seeker, which has another result type.
type offset = int64

func (f *rootFile) Seek(off offset, whence int) (offset, esys.Errno) {
	if dir, no := f.IsDir(); no == 0 && dir {
		if off != 0 || whence != io.SeekStart {
			return 0, esys.EINVAL
		}
	}
	n, err := f.file.Seek(off, whence)
	f.moved = true
	return n, errno(err)
}

// reach counts the bytes between the end of the file and size as if they were written: the file grows by them.
func (f *rootFile) reach(size int64) esys.Errno {
	info, err := f.file.Stat()
	if err != nil {
		return errno(err)
	}
	f.env.useFile(max(size-info.Size(), 0))
	return 0
}

// Truncate sets the size of the file. If the file grows, the added bytes count as written.
func (f *rootFile) Truncate(size int64) esys.Errno {
	switch {
	case !f.write:
		return esys.EROFS
	case size < 0:
		return esys.EINVAL
	}
	if no := f.reach(size); no != 0 {
		return no
	}
	return errno(f.file.Truncate(size))
}

// Readdir returns up to n entries of a folder, in the order of the host.
func (f *rootFile) Readdir(n int) ([]esys.Dirent, esys.Errno) {
	entries, err := f.file.ReadDir(max(n, 1))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errno(err)
	}
	out := make([]esys.Dirent, len(entries))
	for i, e := range entries {
		out[i] = esys.Dirent{Name: e.Name(), Type: e.Type()}
	}
	return out, 0
}

func (f *rootFile) Sync() esys.Errno     { return errno(f.file.Sync()) }
func (f *rootFile) Datasync() esys.Errno { return errno(f.file.Sync()) }

func (f *rootFile) Close() esys.Errno {
	f.env.files--
	return errno(f.file.Close())
}

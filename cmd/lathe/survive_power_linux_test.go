package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

// A disk is a file system in a file: the file holds what has reached the device.
type disk struct {
	image, at string // at: where it is mounted
}

// newDisk makes a disk. Where that is not allowed, the test is skipped.
func newDisk(t *testing.T, size int64) *disk {
	t.Helper()
	d := &disk{image: filepath.Join(t.TempDir(), "image")}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Skipf("needs mkfs.ext4: %v %s", err, out)
	}
	if err := d.mount(t); err != nil {
		t.Skipf("needs to be allowed to mount a file system in a file: %v", err)
	}
	return d
}

func (d *disk) mount(t *testing.T) error {
	at, err := os.MkdirTemp("", "lathe-disk-") // not the test's own folder, which no other user may enter
	if err != nil {
		return err
	}
	if d.at = at; os.Chmod(at, 0o755) != nil {
		return errors.New("its folder cannot be opened to others")
	}
	t.Cleanup(func() {
		_ = exec.Command("umount", "-l", at).Run() // it may be gone
		_ = os.Remove(at)
	})
	out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", d.image, d.at).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// cut makes the disk what is found of it after the power went off: without what was written and had not reached
// the device. Who writes to it must have ended.
func (d *disk) cut(t *testing.T) {
	t.Helper()
	after := &disk{image: filepath.Join(t.TempDir(), "image")}
	for before := ""; ; { // until nothing moves
		sum := copied(t, d.image, after.image)
		if sum == before {
			break
		}
		before = sum
	}
	if out, err := exec.CommandContext(t.Context(), "umount", d.at).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.Remove(d.image); err != nil {
		t.Fatal(err)
	}
	if err := after.mount(t); err != nil {
		t.Fatal(err)
	}
	*d = *after
}

// copied copies a file, and returns the hash of what was read.
func copied(t *testing.T, from, to string) string {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // it is only read
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), in)
	if err = errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return string(hash.Sum(nil))
}

// F7: the power goes off while `lathe serve` works, again and again. What clients received is on the disk
// afterwards; what was not synced is not.
func TestF7_PowerCutUnderLoad(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	d := newDisk(t, 32<<20)
	x := newTrial(t)
	n := max(cycles(t)/6, 2)
	last := x.losesPower(n, d, func() string { return "sqlite:" + filepath.Join(d.at, "runs.db") }, func() {}, func() {})
	close(x.settling)
	x.clients.Wait()
	x.kills(last)
	x.judge(kept(t, d.at), n)
}

// F7: the same, where the disk is that of the database.
func TestF7_PowerCutOfTheDatabase(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	d := newDisk(t, 256<<20)
	db := pgtest.StartIn(t, d.at)
	schema, err := url.Parse(db.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "sync", "-f", d.at).CombinedOutput(); err != nil { // which it leaves out when it is made for tests
		t.Fatalf("%v %s", err, out)
	}
	store := func() string {
		q := schema.Query()
		q.Set("host", db.Dir())
		schema.RawQuery = q.Encode()
		return schema.String()
	}
	x := newTrial(t, "cluster: {lease: 2s}\n")
	n := max(cycles(t)/12, 2)
	x.losesPower(n, d, store, db.Kill, func() {
		db.Move(d.at)
		db.Restart(t)
	})
	x.ends(store(), n)
}

// losesPower has clients work with a `lathe serve` whose store is on a disk that loses its power n times, and
// a last one. off and on are for what else is on the disk.
func (x *trial) losesPower(n int, d *disk, store func() string, off, on func()) (last *proc) {
	t := x.t
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 4 {
		x.clients.Go(func() { x.client(fmt.Sprintf("client%d", i)) })
	}
	forgotten := 0
	for range n {
		p := x.serves(store())
		for range 1 + rng.IntN(20) {
			select {
			case <-x.stirs:
			case <-x.ctx.Done():
				t.Fatal("nothing happens any more")
			}
		}
		if err := os.WriteFile(filepath.Join(d.at, "unsynced"), make([]byte, 1<<12), 0o600); err != nil {
			t.Fatal(err)
		}
		x.kills(p)
		off()
		d.cut(t)
		if info, err := os.Stat(filepath.Join(d.at, "unsynced")); err != nil || info.Size() == 0 {
			forgotten++
		}
		_ = os.Remove(filepath.Join(d.at, "unsynced")) // it is not there, mostly
		on()
	}
	t.Logf("what was not synced was lost %d of %d times", forgotten, n)
	return x.serves(store())
}

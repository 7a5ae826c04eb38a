package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A disk is a file system in a file: the file holds what has reached the device.
type disk struct {
	image, at string // at: where it is mounted
}

// newDisk makes a disk. Where that is not allowed, the test is skipped.
func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{image: filepath.Join(t.TempDir(), "image")}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(32 << 20)
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
	d.at = t.TempDir()
	out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", d.image, d.at).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	at := d.at
	t.Cleanup(func() { _ = exec.Command("umount", "-l", at).Run() }) // it may be gone
	return nil
}

// cut returns the disk as it is found after the power went off: without what was written and had not reached the
// device. Who writes to it must have ended.
func (d *disk) cut(t *testing.T) *disk {
	t.Helper()
	after := &disk{image: filepath.Join(t.TempDir(), "image")}
	for first := []byte(nil); ; { // until nothing moves
		image, err := os.ReadFile(d.image)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(image, first) {
			first = image
			continue
		}
		if err := os.WriteFile(after.image, image, 0o600); err != nil {
			t.Fatal(err)
		}
		break
	}
	if out, err := exec.CommandContext(t.Context(), "umount", d.at).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := after.mount(t); err != nil {
		t.Fatal(err)
	}
	return after
}

// F7: the power goes off while `lathe serve` works, again and again. What clients were told is on the disk
// afterwards; what was not synced is not.
func TestF7_PowerCutUnderLoad(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	x := newTrial(t)
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 4 {
		x.clients.Go(func() { x.client(fmt.Sprintf("client%d", i)) })
	}
	n, forgotten := max(cycles(t)/6, 2), 0
	for range n {
		p := x.serves("sqlite:" + filepath.Join(d.at, "runs.db"))
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
		d = d.cut(t)
		if info, err := os.Stat(filepath.Join(d.at, "unsynced")); err != nil || info.Size() == 0 {
			forgotten++
		}
		_ = os.Remove(filepath.Join(d.at, "unsynced")) // it is not there, mostly
	}
	last := x.serves("sqlite:" + filepath.Join(d.at, "runs.db"))
	close(x.settling)
	x.clients.Wait()
	x.kills(last)
	t.Logf("what was not synced was lost %d of %d times", forgotten, n)
	x.judge(kept(t, d.at), n)
}

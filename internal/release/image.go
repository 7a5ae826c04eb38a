package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// A platformBinary is the Linux program for one architecture.
type platformBinary struct {
	arch    string
	content []byte
}

// imageUser is the user of the image and the owner of its state directory.
const imageUser = 65532

// imageConfig returns the configuration of the image. It equals that of deploy/Containerfile; a test compares the two.
func imageConfig(version string) map[string]any {
	return map[string]any{
		"User":         fmt.Sprintf("%[1]d:%[1]d", imageUser),
		"ExposedPorts": map[string]any{"8700/tcp": struct{}{}},
		"Env":          []string{"LATHE_STATE_DIR=/var/lib/lathe", "XDG_CACHE_HOME=/var/lib/lathe/cache"},
		"Entrypoint":   []string{"/lathe"},
		"Cmd":          []string{"serve", "--addr", "0.0.0.0:8700", "--store", "sqlite:/var/lib/lathe/runs.db", "--config", "/etc/lathe/lathe.yaml"},
		"Volumes":      map[string]any{"/var/lib/lathe": struct{}{}},
		"WorkingDir":   "/",
		"Labels": map[string]string{"org.opencontainers.image.title": "lathe", "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version": strings.TrimPrefix(version, "v"), "org.opencontainers.image.source": "https://github.com/lathe-run/lathe"},
		// Docker reads Healthcheck from OCI images, too. Times are in nanoseconds.
		"Healthcheck": map[string]any{"Test": []string{"CMD", "/lathe", "serve", "--ready", "--addr", "127.0.0.1:8700"},
			"Interval": int64(30e9), "Timeout": int64(6e9), "StartPeriod": int64(10e9)},
	}
}

// A descriptor refers to a blob by its digest.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Media types of the OCI image specification 1.1.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// A layout has the blobs of an OCI image layout, by their SHA-256 in hex.
type layout struct{ blobs map[string][]byte }

// add adds a blob and returns its descriptor.
func (l *layout) add(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	l.blobs[sum] = content
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

func (l *layout) addJSON(mediaType string, v any) (descriptor, error) {
	b, err := json.Marshal(v)
	return l.add(mediaType, b), err
}

// writeImage writes an image for all binaries as an OCI image layout in a tar archive, which podman, docker and skopeo can load.
func writeImage(path, version string, binaries []platformBinary) (err error) {
	l := &layout{map[string][]byte{}}
	var manifests []descriptor
	for _, b := range binaries {
		d, err := l.image(version, b)
		if err != nil {
			return err
		}
		manifests = append(manifests, d)
	}
	platforms, err := l.addJSON(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests})
	if err != nil {
		return err
	}
	tag := strings.TrimPrefix(version, "v")
	platforms.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "lathe:" + tag}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{platforms}})
	if err != nil {
		return err
	}
	files := []file{{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", 0o644, index}}
	for _, sum := range slices.Sorted(maps.Keys(l.blobs)) {
		files = append(files, file{"blobs/sha256/" + sum, 0o644, l.blobs[sum]})
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(writeTar(f, files), f.Close())
}

// image adds the blobs of the image for one architecture and returns the descriptor of its manifest.
func (l *layout) image(version string, b platformBinary) (descriptor, error) {
	var layers []descriptor
	var diffs []string
	for _, make := range []func(*tar.Writer) error{writeSystem, func(t *tar.Writer) error { return addFile(t, "lathe", 0o755, b.content) }} {
		var plain, packed bytes.Buffer
		t := tar.NewWriter(&plain)
		if err := errors.Join(make(t), t.Close()); err != nil {
			return descriptor{}, err
		}
		z := gzip.NewWriter(&packed)
		_, err := z.Write(plain.Bytes())
		if err := errors.Join(err, z.Close()); err != nil {
			return descriptor{}, err
		}
		layers = append(layers, l.add(typeLayer, packed.Bytes()))
		diffs = append(diffs, fmt.Sprintf("sha256:%x", sha256.Sum256(plain.Bytes())))
	}
	config, err := l.addJSON(typeConfig, map[string]any{
		"created": modified, "architecture": b.arch, "os": "linux", "config": imageConfig(version),
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
	})
	if err != nil {
		return descriptor{}, err
	}
	d, err := l.addJSON(typeManifest, map[string]any{"schemaVersion": 2, "mediaType": typeManifest, "config": config, "layers": layers})
	d.Platform = map[string]string{"os": "linux", "architecture": b.arch}
	return d, err
}

// writeSystem writes the system files that the program needs: CA certificates, the name of the user, the state directory and /tmp. The
// program itself contains the time zones.
func writeSystem(t *tar.Writer) error {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // the file cannot express constraints of a root certificate
			if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return err
			}
		}
	}
	return errors.Join(
		addFolder(t, "etc/", 0o755, 0), addFolder(t, "etc/ssl/", 0o755, 0), addFolder(t, "etc/ssl/certs/", 0o755, 0),
		addFile(t, "etc/ssl/certs/ca-certificates.crt", 0o644, roots.Bytes()),
		addFile(t, "etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nlathe:x:%[1]d:%[1]d:lathe:/var/lib/lathe:/sbin/nologin\n", imageUser)),
		addFile(t, "etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nlathe:x:%d:\n", imageUser)),
		addFolder(t, "etc/lathe/", 0o755, 0),
		addFolder(t, "tmp/", 0o1777, 0),
		addFolder(t, "var/", 0o755, 0), addFolder(t, "var/lib/", 0o755, 0), addFolder(t, "var/lib/lathe/", 0o700, imageUser),
	)
}

func addFile(t *tar.Writer, name string, mode int64, content []byte) error {
	err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: modified, Format: tar.FormatPAX})
	if err == nil {
		_, err = t.Write(content)
	}
	return err
}

func addFolder(t *tar.Writer, name string, mode int64, owner int) error {
	return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: modified, Format: tar.FormatPAX})
}

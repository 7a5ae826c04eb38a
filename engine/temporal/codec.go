package temporal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/lathe-run/lathe"
)

// Blobs stores payloads outside of the workflow history. All workers and clients must use the same storage. Its methods may be called from
// several goroutines at once.
type Blobs interface {
	// Put stores data under key, which is the SHA-256 of data in hexadecimal. It may be called again with the same key and data.
	Put(key string, data []byte) error
	// Get returns the data that is stored under key. It must return an error if no data is stored there.
	Get(key string) ([]byte, error)
}

// CodecOptions are the options of [NewCodec]. At least one of Blobs and Encrypt is required.
type CodecOptions struct {
	// Blobs stores the payloads that are larger than Limit; nil: all payloads are in the workflow history.
	Blobs Blobs
	// Limit is the maximum size of a payload in the history, in bytes, after Encrypt; 0: 256 KiB. A Temporal server refuses payloads above
	// 2 MiB. If Blobs is nil, Limit has no effect.
	Limit int
	// Encrypt encrypts each payload before it is stored in the history or in Blobs; nil: payloads are readable in both.
	Encrypt converter.PayloadCodec
}

const (
	defaultCodecLimit = 256 << 10
	// MaxBlob is the maximum size of one payload in Blobs, in bytes. The codec returns an error of code invalid_request for a larger one.
	MaxBlob = 64 << 20

	encodingKey       = "encoding"
	referenceEncoding = "lathe/reference"
)

// NewCodec returns a payload codec that stores large payloads in Blobs and encrypts payloads. It is for the data converter of the clients
// and workers of a namespace: see [converter.NewCodecDataConverter]. A reference to a blob contains the hash of the blob, which Decode
// verifies. Decode also accepts payloads that are not references. The codec never removes blobs: remove those that are older than the
// retention period of the namespace. An error of NewCodec has the code invalid_config.
func NewCodec(opts *CodecOptions) (converter.PayloadCodec, error) {
	c := &codec{}
	if opts != nil {
		c.opts = *opts
	}
	switch {
	case c.opts.Blobs == nil && c.opts.Encrypt == nil:
		return nil, codecError(lathe.CodeInvalidConfig, errors.New("the codec has nothing to do: it needs Blobs or Encrypt"))
	case c.opts.Limit < 0 || c.opts.Limit > MaxBlob:
		return nil, codecError(lathe.CodeInvalidConfig, fmt.Errorf("the limit is %d, want 0 to %d", c.opts.Limit, MaxBlob))
	case c.opts.Limit == 0:
		c.opts.Limit = defaultCodecLimit
	}
	return c, nil
}

func codecError(code lathe.Code, err error) error {
	return code.Wrap("temporal: codec", err)
}

type codec struct{ opts CodecOptions }

// A reference is the data of a payload that refers to a blob.
type reference struct {
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// Encode implements [converter.PayloadCodec].
func (c *codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if e := c.opts.Encrypt; e != nil {
		var err error
		if payloads, err = e.Encode(payloads); err != nil {
			return nil, err
		}
	}
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		out[i] = p
		if c.opts.Blobs == nil || len(p.GetData()) <= c.opts.Limit {
			continue
		}
		data, err := proto.Marshal(p)
		if err != nil {
			return nil, codecError(lathe.CodeInternal, err)
		}
		if len(data) > MaxBlob {
			return nil, codecError(lathe.CodeInvalidRequest, fmt.Errorf("a payload of %d bytes: at most %d are kept (MaxBlob)", len(data), MaxBlob))
		}
		sum := sha256.Sum256(data)
		r := reference{SHA256: hex.EncodeToString(sum[:]), Bytes: len(data)}
		if err := c.opts.Blobs.Put(r.SHA256, data); err != nil {
			return nil, codecError(lathe.CodeUnavailable, fmt.Errorf("a payload of %d bytes cannot be kept: %w", len(data), err))
		}
		text, err := json.Marshal(&r)
		if err != nil {
			return nil, codecError(lathe.CodeInternal, err)
		}
		out[i] = &commonpb.Payload{Metadata: map[string][]byte{encodingKey: []byte(referenceEncoding)}, Data: text}
	}
	return out, nil
}

// Decode implements [converter.PayloadCodec]. It also accepts payloads that are not references to blobs, so that a namespace may have both.
func (c *codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		out[i] = p
		if string(p.GetMetadata()[encodingKey]) != referenceEncoding {
			continue
		}
		var err error
		if out[i], err = c.load(p); err != nil {
			return nil, err
		}
	}
	if e := c.opts.Encrypt; e != nil {
		return e.Decode(out)
	}
	return out, nil
}

// load returns the payload to which a reference refers.
func (c *codec) load(p *commonpb.Payload) (*commonpb.Payload, error) {
	if c.opts.Blobs == nil {
		return nil, codecError(lathe.CodeInvalidConfig, errors.New("the history has a reference, and this codec has no Blobs"))
	}
	var r reference
	if sum, err := hex.DecodeString(decode(p, &r)); err != nil || len(sum) != sha256.Size {
		return nil, codecError(lathe.CodeInternal, errors.New("the reference of a payload is not valid"))
	}
	data, err := c.opts.Blobs.Get(r.SHA256)
	if err != nil {
		return nil, codecError(lathe.CodeUnavailable, fmt.Errorf("the payload %s is not there: %w", r.SHA256, err))
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != r.SHA256 {
		return nil, codecError(lathe.CodeInternal, fmt.Errorf("the payload %s was changed: its hash differs", r.SHA256))
	}
	out := &commonpb.Payload{}
	if err := proto.Unmarshal(data, out); err != nil {
		return nil, codecError(lathe.CodeInternal, fmt.Errorf("the payload %s is not valid", r.SHA256))
	}
	return out, nil
}

// decode decodes the reference r from p and returns its hash, or "" if it is not valid.
func decode(p *commonpb.Payload, r *reference) string {
	if json.Unmarshal(p.GetData(), r) != nil {
		return ""
	}
	return r.SHA256
}

// A directory stores payloads as files.
type directory struct{ root *os.Root }

// NewDirectory returns [Blobs] that stores each blob as a file in a directory, which NewDirectory creates if necessary. Workers on several
// machines need a shared directory. The files have mode 0600, and are written atomically.
func NewDirectory(path string) (Blobs, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, codecError(lathe.CodeInvalidConfig, err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, codecError(lathe.CodeInvalidConfig, err)
	}
	return &directory{root}, nil
}

// Put implements [Blobs].
func (d *directory) Put(key string, data []byte) error {
	if _, err := d.root.Stat(key); err == nil {
		return nil
	}
	f, err := os.CreateTemp(d.root.Name(), "."+key+"-*")
	if err != nil {
		return err
	}
	name := filepath.Base(f.Name())
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = d.root.Rename(name, key)
	}
	if err != nil {
		_ = d.root.Remove(name)
	}
	return err
}

// Get implements [Blobs].
func (d *directory) Get(key string) ([]byte, error) {
	f, err := d.root.Open(key)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, lathe.ErrNotFound
		}
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxBlob+1))
	if err == nil && len(data) > MaxBlob {
		err = fmt.Errorf("the file has more than %d bytes", MaxBlob)
	}
	return data, err
}

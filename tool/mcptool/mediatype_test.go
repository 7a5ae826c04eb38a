package mcptool

import "testing"

// A media type that a server claims is not used if the first bytes of the content contradict it.
func TestMediaTypesAreCheckedByFirstBytes(t *testing.T) {
	t.Parallel()
	png, jpeg, page := "\x89PNG\r\n\x1a\nrest", "\xff\xd8\xffrest", "<!DOCTYPE html><script>x</script>"
	for _, c := range []struct{ declared, data, want string }{
		{"image/png", png, "image/png"}, {"image/png", jpeg, "image/jpeg"}, {"image/png", page, octets}, {"image/png", "\x00\x01\x02", octets},
		{"image/tiff", "II*\x00", "image/tiff"}, {"image/tiff", page, octets}, {"image/svg+xml", "<svg/>", "image/svg+xml"}, {"image/svg+xml", "<?xml version='1.0'?><svg/>", "image/svg+xml"}, {"image/svg+xml", page + "<svg/>", "text/xml"},
		{"image/svg+xml", "<a/>", "text/xml"}, {"image/svg+xml; charset=utf-8", "<svg/>", "image/svg+xml"}, {"text/plain", "<svg/>", "text/plain"}, {"", "<svg/>", "text/plain"}, {"image/svg+xml", "\x00", octets},
		{"audio/wav", "RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav"}, {"audio/flac", "fLaC\x00\x01", "audio/flac"}, {"audio/wav", page, octets}, {"audio/mpeg", png, octets},
		{"text/plain", "hello", "text/plain"}, {"text/plain; charset=utf-8", "hello", "text/plain"}, {"text/html", "\xff\xfe\x00", octets},
		{"application/pdf", "%PDF-1.7", "application/pdf"}, {"application/pdf", page, octets}, {"application/json", "{}", "application/json"},
		{"", png, "image/png"}, {"", "hello", "text/plain"}, {"no type", "\x00", octets}, {"application/zip", "PK\x03\x04", "application/zip"},
	} {
		if got := mediaTypeOf(c.declared, []byte(c.data)); got != c.want {
			t.Errorf("%s of %.12q: %s, want %s", c.declared, c.data, got, c.want)
		}
	}
}

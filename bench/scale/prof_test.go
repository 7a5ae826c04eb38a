package main
import "testing"
func BenchmarkStart(b *testing.B) { s := &settings{dir: b.TempDir()}; p, err := s.openAPIConfig(1000, nowhere); if err != nil { b.Fatal(err) }
 b.ReportAllocs()
 for b.Loop() { a, err := newApp(p); if err != nil { b.Fatal(err) }; _ = a.Close() } }
func BenchmarkReq(b *testing.B) { s := &settings{dir: b.TempDir()}; op, stop, err := s.openAPIRequest(2000); if err != nil { b.Fatal(err) }; defer stop()
 b.ReportAllocs()
 for b.Loop() { if err := op(); err != nil { b.Fatal(err) } } }

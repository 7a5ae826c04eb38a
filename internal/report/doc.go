// Package report writes what commands and the lab have measured: tables for terminals, pages of HTML, JUnit XML and JSON. The packages
// that measure say what a report has; this one knows the forms, and makes text from outside harmless in each of them.
package report

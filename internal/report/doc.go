// Package report writes reports of commands and of the lab: tables for terminals, HTML pages, JUnit XML and JSON. The calling packages
// define the contents of a report; report defines the formats and escapes text from outside in each of them.
package report

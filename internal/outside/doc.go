// Package outside is a program outside of Lathe's module: it can use what every other program can use, and no internal package. It imports
// each public package, so that an exported signature that needs an internal type does not compile here. Its tests are those that an author
// of such a program would write, with package lathetest.
package outside

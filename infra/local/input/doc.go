// Package input reads comments from the files people bring: JSON, JSON lines and
// CSV, in UTF-8, UTF-16 or CP949, as editors and Excel write them. What cannot
// be read is named with its row.
package input

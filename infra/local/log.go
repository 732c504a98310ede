package local

import (
	"io"
	"log/slog"
)

// NewLogger returns a logger of lines for people, from level on, and makes it
// the process's.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	logger := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(logger)
	return logger
}

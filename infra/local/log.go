package local

import (
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"sunhwa/shared/obs"
)

// NewLogger returns a logger of readable lines, from level on, and makes it the
// process's: slog's default, and where go-redis says that a connection broke.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	logger := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(logger)
	redis.SetLogger(obs.Printf{Logger: logger, Source: "go-redis"})
	return logger
}

import java.io.Serializable;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;

/**
 * When rows are due: the time of events is cut into batches of one length, of which each is due so long after
 * the one before.
 *
 * <p>Sources and sinks of a job have one clock, since they are in one JVM. It starts a second after it is first
 * asked for, so that all instances of the sources are there.
 *
 * @param origin where the first batch begins, in milliseconds
 * @param length of a batch, in microseconds of the time of events
 * @param every the time between two batches, in microseconds
 */
record Pace(long origin, long length, long every) implements Serializable {
    static final ConfigOption<Long> ORIGIN = number("pace.origin", "start of the first batch (milliseconds)");
    static final ConfigOption<Long> LENGTH = number("pace.length", "event time of a batch (microseconds)");
    static final ConfigOption<Long> EVERY = number("pace.every", "between two batches (microseconds)");
    static final Set<ConfigOption<?>> OPTIONS = Set.of(ORIGIN, LENGTH, EVERY);

    /** Made when it is first used, by one thread for all. */
    private static final class Clock {
        static final long START = System.nanoTime() + 1_000_000_000L;
    }

    static Pace of(ReadableConfig options) {
        return new Pace(options.get(ORIGIN), options.get(LENGTH), options.get(EVERY));
    }

    private static ConfigOption<Long> number(String key, String what) {
        return ConfigOptions.key(key).longType().noDefaultValue().withDescription(what);
    }

    /** The nanoseconds since the first batch was due. */
    static long now() {
        return System.nanoTime() - Clock.START;
    }

    /** The number of the batch in which an instant is, in milliseconds. */
    int batch(long instant) {
        return (int) Math.floorDiv((instant - origin) * 1000, length);
    }

    /** The first instant of a batch, in milliseconds. */
    long first(int batch) {
        return origin - Math.floorDiv(-batch * length, 1000);
    }

    /** Waits until a batch is due, or it is said that nobody waits any more. */
    void await(int batch, BooleanSupplier waiting) {
        long due = batch * every * 1000;
        for (long left = due - now(); left > 0 && waiting.getAsBoolean(); left = due - now()) {
            LockSupport.parkNanos(left);
        }
    }
}

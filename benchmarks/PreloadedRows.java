import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Set;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.legacy.table.connector.source.SourceFunctionProvider;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.abilities.SupportsSourceWatermark;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.data.binary.BinaryStringData;
import org.apache.flink.table.data.writer.BinaryRowWriter;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;

/**
 * The table connector {@code preloaded}: rows that are in memory before a job starts, as columns of longs.
 *
 * <p>A folder has a file per column, {@code NAME.longs}, eight bytes for a row, little-endian: a number, the
 * milliseconds of a timestamp, or for a text the number of its line in {@code NAME.words}. The files are
 * mapped, and their pages are in the system's cache since they were written, so nothing is read or parsed.
 * Each of the n instances of the source emits every n-th row, in order, and in Flink's own binary format, which
 * is the one that is cheapest to hash and to send on; the row object is reused. The legacy interface for
 * sources is used since it costs the least per row.
 *
 * <p>With the options of a {@link Pace}, rows are emitted when they are due by their column {@code ts}, and a
 * table whose watermark is {@code SOURCE_WATERMARK()} gets one at the end of each batch.
 */
@SuppressWarnings({"deprecation", "serial"})
public final class PreloadedRows implements DynamicTableSourceFactory {
    private static final ConfigOption<String> PATH =
            ConfigOptions.key("path").stringType().noDefaultValue().withDescription("the folder");

    @Override
    public String factoryIdentifier() {
        return "preloaded";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(PATH);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Pace.OPTIONS;
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validate();
        RowType columns = (RowType) context.getPhysicalRowDataType().getLogicalType();
        boolean paced = helper.getOptions().getOptional(Pace.ORIGIN).isPresent();
        Pace pace = paced ? Pace.of(helper.getOptions()) : null;
        return new Table(helper.getOptions().get(PATH), columns, pace);
    }

    private static final class Table implements ScanTableSource, SupportsSourceWatermark {
        private final String path;
        private final RowType columns;
        private final Pace pace;
        private boolean watermarks;

        Table(String path, RowType columns, Pace pace) {
            this.path = path;
            this.columns = columns;
            this.pace = pace;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            // Of a source that is said to be bounded, only the last watermark is passed on.
            return SourceFunctionProvider.of(new Rows(path, columns, pace, watermarks), !watermarks);
        }

        @Override
        public void applySourceWatermark() {
            watermarks = true;
        }

        @Override
        public DynamicTableSource copy() {
            Table copy = new Table(path, columns, pace);
            copy.watermarks = watermarks;
            return copy;
        }

        @Override
        public String asSummaryString() {
            return "preloaded rows";
        }
    }

    private static final class Rows extends RichParallelSourceFunction<RowData> {
        private final String path;
        private final RowType columns;
        private final Pace pace;
        private final boolean watermarks;
        private volatile boolean running = true;

        Rows(String path, RowType columns, Pace pace, boolean watermarks) {
            this.path = path;
            this.columns = columns;
            this.pace = pace;
            this.watermarks = watermarks;
        }

        @Override
        public void run(SourceContext<RowData> out) throws IOException {
            Column[] read = new Column[columns.getFieldCount()];
            for (int place = 0; place < read.length; place++) {
                read[place] = column(columns.getFieldNames().get(place), columns.getTypeAt(place), place);
            }
            TaskInfo task = getRuntimeContext().getTaskInfo();
            LongBuffer times = map("ts");
            int rows = times.capacity();
            int batch = -1;
            BinaryRowData row = new BinaryRowData(read.length);
            BinaryRowWriter writer = new BinaryRowWriter(row);
            for (int at = task.getIndexOfThisSubtask();
                    at < rows && running;
                    at += task.getNumberOfParallelSubtasks()) {
                if (pace != null && pace.batch(times.get(at)) > batch) {
                    batch = pace.batch(times.get(at));
                    begin(batch, out);
                }
                writer.reset();
                for (Column column : read) {
                    column.write(writer, at);
                }
                writer.complete();
                synchronized (out.getCheckpointLock()) {
                    out.collect(row);
                }
            }
        }

        /** Says that the batches before have ended, and waits until this one is due. */
        private void begin(int batch, SourceContext<RowData> out) {
            if (watermarks) {
                out.emitWatermark(new Watermark(pace.first(batch) - 1));
            }
            pace.await(batch, () -> running);
        }

        @Override
        public void cancel() {
            running = false;
        }

        /** What copies the value of one row from a column to a place in Flink's row. */
        private interface Column {
            void write(BinaryRowWriter writer, int row);
        }

        private Column column(String name, LogicalType type, int place) throws IOException {
            LongBuffer values = map(name);
            switch (type.getTypeRoot()) {
                case BIGINT:
                    return (writer, row) -> writer.writeLong(place, values.get(row));
                case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                    return (writer, row) ->
                            writer.writeTimestamp(place, TimestampData.fromEpochMillis(values.get(row)), 3);
                case VARCHAR:
                    StringData[] words = words(name);
                    return (writer, row) -> writer.writeString(place, words[(int) values.get(row)]);
                default:
                    throw new IllegalArgumentException(name + " is of type " + type);
            }
        }

        private LongBuffer map(String name) throws IOException {
            try (FileChannel file = FileChannel.open(Path.of(path, name + ".longs"), StandardOpenOption.READ)) {
                return file.map(FileChannel.MapMode.READ_ONLY, 0, file.size())
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .asLongBuffer();
            }
        }

        private StringData[] words(String name) throws IOException {
            return Files.readAllLines(Path.of(path, name + ".words"), StandardCharsets.UTF_8).stream()
                    .map(
                            word -> {
                                BinaryStringData text = BinaryStringData.fromString(word);
                                text.ensureMaterialized();
                                return text;
                            })
                    .toArray(StringData[]::new);
        }
    }
}

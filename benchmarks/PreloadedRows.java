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
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
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
        return Set.of();
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validate();
        RowType columns = (RowType) context.getPhysicalRowDataType().getLogicalType();
        return new Table(helper.getOptions().get(PATH), columns);
    }

    private record Table(String path, RowType columns) implements ScanTableSource {
        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            return SourceFunctionProvider.of(new Rows(path, columns), true);
        }

        @Override
        public DynamicTableSource copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "preloaded rows";
        }
    }

    private static final class Rows extends RichParallelSourceFunction<RowData> {
        private final String path;
        private final RowType columns;
        private volatile boolean running = true;

        Rows(String path, RowType columns) {
            this.path = path;
            this.columns = columns;
        }

        @Override
        public void run(SourceContext<RowData> out) throws IOException {
            Column[] read = new Column[columns.getFieldCount()];
            for (int place = 0; place < read.length; place++) {
                read[place] = column(columns.getFieldNames().get(place), columns.getTypeAt(place), place);
            }
            TaskInfo task = getRuntimeContext().getTaskInfo();
            int rows = map(columns.getFieldNames().get(0)).capacity();
            BinaryRowData row = new BinaryRowData(read.length);
            BinaryRowWriter writer = new BinaryRowWriter(row);
            for (int at = task.getIndexOfThisSubtask();
                    at < rows && running;
                    at += task.getNumberOfParallelSubtasks()) {
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
